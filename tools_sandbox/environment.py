"""The environment that every command gets: fixed, so that two runs print the same."""

EPOCH_S = 1_704_067_200
"""2024-01-01, the date of commits and of the files of a pristine workspace."""
_DATE = "2024-01-01T00:00:00+00:00"

# What a command may read of the system besides /usr: links or directories, and parts of /etc.
SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl/certs", "mime.types")
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
        "SOURCE_DATE_EPOCH": str(EPOCH_S),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        **{
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in (("NAME", USER), ("EMAIL", "agent@localhost"), ("DATE", _DATE))
        },
    }
