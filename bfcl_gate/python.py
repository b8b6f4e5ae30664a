"""The types of Python functions; their arguments are JSON values."""

from collections.abc import Mapping
from typing import Final

TYPES: Final[Mapping[str, type]] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    # Parity: "any" is a string, unless the accepted values are of another type.
    "any": str,
}
ARRAY_TYPES: Final = frozenset({"array", "tuple"})


def read(value: object, declared: str, item_type: str | None) -> object:
    """Return the value to compare: an integer stands for a float.

    Raises:
        OverflowError: The integer is too large for a float.
    """
    return float(value) if declared == "float" and type(value) is int else value


def write(value: object, declared: str, item_type: str | None) -> object:
    """Return an argument that `read` reads as `value`."""
    return value
