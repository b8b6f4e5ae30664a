"""The battery tells a sandbox that isolates from one that does not."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sandbox_attacks import carry_out
from tools_sandbox.attacks import all_attacks
from tools_sandbox.binaries import find_bwraps
from tools_sandbox.check import CHECK_LIMITS, CheckReport, run_battery
from tools_sandbox.errors import SandboxUnavailable
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import open_sandbox, open_view
from tools_sandbox.store import Store

UNPROMISED_BY_OLD_VERSIONS = {"fill_tmp", "fill_home", "fill_shared_memory"}
CONCERNED_BY_OLD_VERSIONS = {
    "read_host_environment",
    "nested_user_namespace",
    "namespace_by_clone",
    "namespace_by_clone3",
    "process_flood",
    "fork_bomb",
}
"""What those options would help to stop: a clear environment, a filter of namespaces."""
DOCS = Path(__file__).parent.parent / "docs" / "sandbox.md"


def battery(tmp_path_factory: pytest.TempPathFactory, tier: Tier) -> CheckReport:
    top = tmp_path_factory.mktemp("check")
    (top / "empty").mkdir()
    pristine = Store(top / "store").add_directory(top / "empty")
    try:
        with open_view(pristine, tier=tier, limits=CHECK_LIMITS) as sandbox:
            return run_battery(sandbox)
    except SandboxUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> CheckReport:
    return battery(tmp_path_factory, Tier.NONE)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> CheckReport:
    return battery(tmp_path_factory, Tier.LANDLOCK)


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> CheckReport:
    return battery(tmp_path_factory, Tier.BUBBLEWRAP)


def through(report: CheckReport) -> set[str]:
    return {each.name for each in report.attacks if not each.stopped}


def test_bubblewrap_stops_every_attack(isolated: CheckReport) -> None:
    assert isolated.broken == ()
    assert through(isolated) <= UNPROMISED_BY_OLD_VERSIONS
    assert len(isolated.attacks) >= 80


def test_landlock_keeps_its_promises_and_makes_no_others(guarded: CheckReport) -> None:
    assert guarded.broken == ()
    assert through(guarded) <= {
        "change_mode_outside",
        "change_times_outside",
        "stat_outside",
        "host_name",
        "signal_host_process",
        "fill_tmp",
        "fill_home",
        "process_flood",
    }


def test_tier_none_keeps_its_few_promises(bare: CheckReport) -> None:
    assert bare.broken == ()


def test_what_would_change_the_machine_is_not_tried_where_nothing_stops_it(
    bare: CheckReport,
) -> None:
    skipped = {each.name for each in bare.not_run if "change the machine" in each.reason}
    assert skipped == {
        "write_system",
        "plant_set_user_id",
        "make_device",
        "change_host_name",
        "mount_file_system",
        "remount_system",
        "gain_by_set_user_id",
        "write_proc",
        "write_sys",
        "fork_bomb",
    }


@pytest.mark.parametrize(
    "name",
    [
        "read_host_secret",
        "read_host_accounts",
        "write_outside",
        "change_mode_outside",
        "symlink_read",
        "symlink_write",
        "loopback_tcp",
        "abstract_unix_socket",
        "unix_socket_in_host_directory",
        "list_host_processes",
        "signal_host_process",
        "read_host_environment",
        "host_name",
        "sysv_shared_memory",
        "truncate_outside",
        "delete_outside",
        "change_times_outside",
        "stat_outside",
        "directory_symlink_write",
        "hard_link_read",
        "loopback_udp",
        "serve_to_host",
        "trace_host_process",
        "read_host_memory",
        "read_through_host_process",
        "write_host_terminal",
        "fill_tmp",
        "fill_home",
    ],
)
def test_an_attack_gets_through_where_nothing_is_isolated(bare: CheckReport, name: str) -> None:
    if name in [each.name for each in bare.not_run]:
        pytest.skip(f"{name} can't be carried out on this machine")
    [outcome] = [each for each in bare.attacks if each.name == name]
    assert not outcome.stopped
    assert not outcome.promised


def test_the_report_is_plain_json_of_the_published_shape(bare: CheckReport) -> None:
    record = json.loads(json.dumps(bare.to_json()))
    assert record["tier"] == "none"
    assert all(set(each) == {"name", "stopped", "promised"} for each in record["attacks"])


def test_the_documentation_names_every_attack(bare: CheckReport) -> None:
    names = [each.name for each in bare.attacks] + [each.name for each in bare.not_run]
    assert len(names) == len(set(names))
    text = DOCS.read_text()
    assert [name for name in names if f"`{name}`" not in text] == []


def test_each_bubblewrap_of_this_machine_keeps_every_promise(tmp_path: Path) -> None:
    others = find_bwraps()[1:]
    if not others:
        pytest.skip("this machine has no second bubblewrap")
    for number, bwrap in enumerate(others):
        workspace = tmp_path / str(number)
        workspace.mkdir()
        with open_sandbox(workspace, bwraps=[bwrap], limits=CHECK_LIMITS) as sandbox:
            assert run_battery(sandbox).broken == ()


def test_the_options_of_bubblewrap_0_4_0_are_enough_for_what_is_then_promised(
    tmp_path: Path,
) -> None:
    found = find_bwraps()
    if not found:
        pytest.skip("this machine has no bubblewrap")
    recent = {"--clearenv", "--size", "--disable-userns"}
    old = replace(found[0], options=found[0].options - recent)
    try:
        sandbox = open_sandbox(tmp_path, bwraps=[old], limits=CHECK_LIMITS)
    except SandboxUnavailable as reason:
        pytest.skip(str(reason))
    with sandbox:
        unpromised = {each.name for each in all_attacks() if not each.promised(sandbox.info)}
        assert unpromised == UNPROMISED_BY_OLD_VERSIONS
        assert carry_out(sandbox, CONCERNED_BY_OLD_VERSIONS) == set()
