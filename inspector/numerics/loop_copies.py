"""The copies that a loop begins with and carries on: instructions that no recorded node stands for.

Our emitter copies each carried value before a loop and behind each pass of its body, in order,
under the handle of the loop: the inputs of the recorded loop, and the results of its body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.numerics.flat_graph import FlatGraph, Value, inner_name

CLONE = "aten::clone.out"
_LOOP = "::while_loop"
_BODY = 1  # among the nested graphs of a loop; the first one asks whether it goes on


def loop_copies(
    flat: FlatGraph, handles: Mapping[int, Sequence[int]], clones: Sequence[int]
) -> Mapping[int, Value]:
    """Return instruction -> recorded value, of loops whose copies are all there.

    Args:
        flat: the recorded graph
        handles: debug handles by instruction
        clones: instructions that copy and are not a recorded node, in order
    """
    if not clones:
        return {}
    by_handle: dict[int, list[int]] = {}
    for step in clones:
        for handle in handles.get(step, ()):
            by_handle.setdefault(handle, []).append(step)
    found: dict[int, Value] = {}
    loops = [node for node in flat.nodes if node.operator.endswith(_LOOP)]
    handled = [node.node.debug_handle for node in loops]
    for node in loops:
        steps: Sequence[int] = by_handle.get(node.node.debug_handle or 0, ())
        inner = (*node.scope, inner_name(node.node.name, _BODY))
        body = flat.graphs.get(inner)
        if body is None or handled.count(node.node.debug_handle) > 1:
            continue
        values = [*node.reads[: len(body.outputs)], *((inner, name) for name in body.outputs)]
        if len(steps) == len(values) == 2 * len(body.outputs):
            found.update(zip(steps, values, strict=True))
    return found
