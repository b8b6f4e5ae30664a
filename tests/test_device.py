"""Device facts from any root, and profiles that their schema accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.resources import data_dir
from edge_agentic.device.facts import read_device
from edge_agentic.device.profile import load_profile, read_profile

PROFILE = (data_dir("device_profiles") / "generic-x86.toml").read_text()


@pytest.mark.parametrize("board", ["agx-orin-jp5", "agx-thor-jp7", "orin-nano-jp6"])
def test_a_boards_name_comes_from_its_device_tree(shared_data: Path, board: str) -> None:
    root = shared_data / "jetson" / "fixtures" / board / "sysfs"
    expected = (root / "proc/device-tree/model").read_bytes().rstrip(b"\0\n").decode()
    assert read_device(root).model == expected
    assert "Jetson" in expected


def test_a_machine_that_says_nothing_has_none(tmp_path: Path) -> None:
    facts = read_device(tmp_path)
    assert (facts.model, facts.cpu, facts.operating_system) == (None, None, None)


def test_the_facts_hold_nothing_that_names_an_owner() -> None:
    import socket

    assert socket.gethostname() not in str(read_device().to_json().values()).split()
    assert not {"hostname", "serial", "user"} & read_device().to_json().keys()


@pytest.mark.parametrize("profile_id", ["generic-x86", "generic-aarch64"])
def test_a_bundled_profile_loads(profile_id: str) -> None:
    profile = load_profile(profile_id)
    assert profile.id == profile_id
    assert profile.engine.context_tokens == 32768


def test_this_machine_has_a_profile() -> None:
    assert load_profile().id.startswith("generic-")


def test_an_unknown_profile_lists_the_known_ones() -> None:
    with pytest.raises(BadInputError, match="there are: generic-aarch64, generic-x86"):
        load_profile("orin-nano-4gb")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("batch_tokens = 512 ", "batch_tokens = 0 ", "engine.batch_tokens"),
        ('id = "generic-x86"', "", "'id' is a required property"),
        ("[engine]", "[engine]\nturbo = true", "'turbo' was unexpected"),
        ("[engine]", "[engine", "not valid TOML"),
    ],
)
def test_a_wrong_profile_is_named_with_its_key(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(PROFILE.replace(old, new, 1))
    with pytest.raises(BadInputError) as caught:
        read_profile(path)
    assert str(caught.value).startswith(f"{path}: ") and said in str(caught.value)
