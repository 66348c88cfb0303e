"""Times as people write them: 90d, 12h."""

from __future__ import annotations

from superarm.errors import InvalidInput

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(text: str, option: str, owner: str) -> float:
    """The seconds in 90d, 12h, 30m, 45s or 45.

    >>> seconds_of("90d", "--retain", "superarm serve")
    7776000.0
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = -1.0
    if not 0.0 < seconds < float("inf"):
        raise InvalidInput.must(option, owner, "a time such as 90d, 12h, 30m or 45s", text)
    return seconds
