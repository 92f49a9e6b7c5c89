"""The message of a job that does not use the results of an earlier call."""

from __future__ import annotations

from collections.abc import Mapping


def restart_words(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return why results of an earlier call are not used, empty if they are.

    Args:
        before: hash of each part that the results belong to, by its name
        now: those of this call
    """
    changed = [part for part in {**before, **now} if before.get(part) != now.get(part)]
    return f"starts over: {', '.join(changed)} changed since the last call" if changed else ""
