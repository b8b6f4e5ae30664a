"""The environment that every command gets: fixed, so that two runs print the same."""

_DATE = "2024-01-01T00:00:00+00:00"
_EPOCH_S = "1704067200"

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USER = "agent"


def fixed_environment(*, home: str, tmp: str) -> dict[str, str]:
    """All variables that a command sees; nothing comes from the caller's own environment."""
    return {
        "HOME": home,
        "USER": USER,
        "LOGNAME": USER,
        "SHELL": "/bin/bash",
        "PATH": PATH,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": tmp,
        "TERM": "dumb",
        "NO_COLOR": "1",
        "COLUMNS": "80",
        "LINES": "24",
        "PAGER": "cat",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SOURCE_DATE_EPOCH": _EPOCH_S,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        **{
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in (("NAME", USER), ("EMAIL", "agent@localhost"), ("DATE", _DATE))
        },
    }
