"""Which boxes of a graph are open, kept in the state as one string per box of any graph."""

from __future__ import annotations

from collections.abc import Iterable

from devtools_app.viewmodels.layout.cluster_tree import ClusterPath

_JOINT = "\x1f"  # between the keys of a path; occurs in no name


def boxes_scope(method_scope: str, graph: str, flat: bool) -> str:
    """Return the prefix of the strings of one graph of a method."""
    mode = "flat" if flat else "modules"
    return f"{method_scope}{graph}{_JOINT}{mode}{_JOINT}"


def opened_boxes(expanded: Iterable[str], scope: str) -> frozenset[ClusterPath] | None:
    """Return the boxes the user has open, None while the user has not touched them."""
    own = [one.removeprefix(scope) for one in expanded if one.startswith(scope)]
    if not own:
        return None
    return frozenset(tuple(one.split(_JOINT)) for one in own if one)


def with_opened_boxes(
    expanded: Iterable[str], scope: str, own: Iterable[ClusterPath]
) -> frozenset[str]:
    """Return all strings with those of one graph replaced; the prefix alone marks it as touched."""
    rest = {one for one in expanded if not one.startswith(scope)}
    return frozenset(rest | {scope + _JOINT.join(path) for path in own} | {scope})
