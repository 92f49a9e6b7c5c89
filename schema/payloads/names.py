"""Names of nodes, which backends write freely and graphs need unique."""

from __future__ import annotations


def unique(name: str, index: int, taken: set[str]) -> str:
    """Return an unused name and reserve it: the name, or the name with the index appended.

    Args:
        name: as the backend wrote it
        index: position of the node
        taken: used names; the new one is added
    """
    built = name
    while built in taken:
        built = f"{built}#{index}"
    taken.add(built)
    return built
