"""Durations the way people write them: "1h30m", "250ms", "2d"."""

import re

SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
TOKEN = re.compile(r"([0-9.]+)(d|h|m|s|ms)")


def parse(text):
    """Seconds in a text such as "1h30m"; ValueError where it is not a duration."""
    return sum(float(number) * SECONDS[unit] for number, unit in TOKEN.findall(text))


def render(seconds):
    """The shortest text for a whole number of seconds: 5400 gives "1h30m"."""
    parts = []
    rest = int(seconds)
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(rest, int(SECONDS[unit]))
        if count:
            parts.append("%d%s" % (count, unit))
    return "".join(parts)
