"""Prints one line for each case; exits 1 if one is wrong."""

import sys

from duration import parse, render

CASES = [
    (parse, "45s", 45.0),
    (parse, "1h30m", 5400.0),
    (parse, "2d", 172800.0),
    (parse, "1.5h", 5400.0),
    (parse, "250ms", 0.25),
    (parse, "1m500ms", 60.5),
    (parse, "90", ValueError),
    (parse, "5x", ValueError),
    (parse, "", ValueError),
    (render, 5400, "1h30m"),
    (render, 90061, "1d1h1m1s"),
    (render, 0, "0s"),
]


def outcome(function, argument):
    try:
        return function(argument)
    except Exception as error:
        return type(error)


def name(value):
    return value.__name__ if isinstance(value, type) else repr(value)


wrong = 0
for function, argument, wanted in CASES:
    got = outcome(function, argument)
    if got != wanted:
        wrong += 1
        print("FAIL %s(%r): wanted %s, got %s"
              % (function.__name__, argument, name(wanted), name(got)))
print("%d of %d cases right" % (len(CASES) - wrong, len(CASES)))
sys.exit(1 if wrong else 0)
