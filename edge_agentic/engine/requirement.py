"""Says what to install where the packages of the in-process engine are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from edge_agentic.core.errors import RequirementError


@contextmanager
def importing_llamacpp() -> Iterator[None]:
    """Around the import of modules that need llama-cpp-python or Jinja.

    Such imports stand in functions: loading llama.cpp's library takes time that other commands
    don't have.

    Raises:
        RequirementError: a package is missing, or its library can't be loaded here.
    """
    try:
        yield
    except (ImportError, OSError) as error:
        raise RequirementError(
            f"the in-process engine needs llama-cpp-python ({error}); "
            "run: pip install 'edge-agentic[llamacpp]'"
        ) from None
