"""Where an OpenAI-compatible server is reached, and with which key."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from edge_agentic.core.errors import BadInputError, RequirementError

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_API_PATH: Final = "/v1"
_SECRET: Final = 8
"""The fewest characters of a key that anyone could want to keep."""
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Endpoint:
    """A server's address: what requests are sent to, and nothing secret."""

    scheme: str
    host: str
    port: int
    api_path: str
    """Start of the API's paths, such as `/v1`; never ends with a slash."""

    @property
    def is_tls(self) -> bool:
        """Whether the connection is encrypted and the server's certificate verified."""
        return self.scheme == "https"

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine, as far as its address tells."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def authority(self) -> str:
        """Host and port as the `Host` header and URLs have them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The base URL, as a user would give it."""
        return f"{self.scheme}://{self.authority}{self.api_path}"

    @property
    def root_path(self) -> str:
        """Where a server's own paths start (`/props`, `/health`): beside `/v1`, not below it."""
        return self.api_path.removesuffix(_API_PATH)


@dataclass(frozen=True)
class ApiKey:
    """What a server asks for. Its value never leaves the request's header, if it is a secret."""

    value: str = field(repr=False)

    def hide(self, text: str) -> str:
        """The text without the key, which a server may echo anywhere in its answers.

        A key of a few characters, such as the `EMPTY` of local servers, is no secret, and stands
        in honest text.
        """
        return text.replace(self.value, "[API key]") if len(self.value) >= _SECRET else text


def hiding(key: ApiKey | None) -> Callable[[str], str]:
    """What takes a key out of a text; leaves the text as it is where there is no key."""
    return key.hide if key else str


def parse_base_url(text: str) -> Endpoint:
    """An endpoint out of `--base-url`; a URL without a path gets `/v1`.

    Raises:
        BadInputError: no http or https URL, or one with a user, a query or a fragment.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadInputError(f"--base-url {text!r}: {error}") from None
    if parts.scheme not in _DEFAULT_PORTS or not host:
        raise BadInputError(f"--base-url {text!r}: give a URL such as http://127.0.0.1:8080/v1")
    if parts.username is not None or parts.password is not None:
        # Not repeated: it holds a secret.
        raise BadInputError("--base-url holds a user or password; use --api-key-env for a key")
    if parts.query or parts.fragment:
        raise BadInputError(f"--base-url {text!r}: leave out what follows the path")
    if port == 0:
        raise BadInputError(f"--base-url {text!r}: no server listens on port 0")
    path = parts.path.rstrip("/") or _API_PATH
    if any(character.isspace() or not character.isprintable() for character in text):
        raise BadInputError(f"--base-url {text!r}: holds a space or a control character")
    if not (path + host).isascii():
        raise BadInputError(f"--base-url {text!r}: write it in ASCII")
    return Endpoint(parts.scheme, host, port or _DEFAULT_PORTS[parts.scheme], path)


def read_api_key(variable: str | None) -> ApiKey | None:
    """The key that an environment variable holds; None where none was asked for.

    Raises:
        RequirementError: the variable is not set, or no header can carry its value.
    """
    if variable is None:
        return None
    if not _VARIABLE.fullmatch(variable):
        # Not repeated: it may be the key itself.
        raise RequirementError("--api-key-env takes the name of an environment variable")
    value = os.environ.get(variable, "").strip()
    if not value:
        raise RequirementError(f"--api-key-env: the environment variable {variable} is not set")
    if not value.isascii() or not value.isprintable():
        raise RequirementError(f"--api-key-env: no header can carry the value of {variable}")
    return ApiKey(value)
