"""Events inside a delegate whose nodes share a debug handle, told apart by kind and order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inspector.numerics.flat_graph import FlatNode
from schema.etdump import DebugTensor

# payload kind -> operators that become it, where the names do not say so
_BECOMES: dict[str, tuple[str, ...]] = {
    "Subtract": ("sub",),
    "Multiply": ("mul",),
    "Divide": ("div",),
    "FullyConnected": ("addmm", "mm", "linear"),
    "BatchMatrixMultiply": ("bmm", "mm", "matmul"),
    "Conv2d": ("convolution",),
    "DepthwiseConv2d": ("convolution",),
    "ConvTranspose2d": ("convolution",),
    "StaticTranspose": ("permute_copy", "transpose_copy", "permute", "t_copy"),
    "StaticSlice": ("slice_copy",),
    "StaticReshape": ("view_copy", "squeeze_copy", "unsqueeze_copy"),
    "Softmax": ("_softmax",),
    "SquareRoot": ("sqrt",),
    "ReciprocalSquareRoot": ("rsqrt",),
    "Square": ("pow", "square"),
    "Negate": ("neg",),
    "Clamp": ("clamp", "relu", "hardtanh"),
    "PReLU": ("_prelu_kernel", "prelu"),
}
_NAMES = {"concatenate": "cat"}


@dataclass(frozen=True, slots=True)
class Event:
    """What one event inside a delegate logged.

    Attributes:
        name: identifier the backend gave it
        nodes: recorded nodes of its debug handles, in graph order
        inferred: whether it was joined by order
        passes: logged tensors, one a pass
        kind: of the payload node, empty when it is not known
    """

    name: str
    nodes: tuple[str, ...]
    inferred: bool
    passes: tuple[tuple[DebugTensor, ...], ...]
    kind: str = ""


def told_apart(
    members: Sequence[FlatNode], events: Sequence[Event]
) -> tuple[dict[str, Event], set[str]]:
    """Return node -> the event it is in, and the nodes of which that is not known.

    Args:
        members: nodes of the delegate, in graph order
        events: of one call, in order
    """
    names = {node.node.name for node in members}
    groups: dict[tuple[str, ...], list[Event]] = {}
    for event in events:
        own = tuple(name for name in event.nodes if name in names)
        if own:
            groups.setdefault(own, []).append(replace(event, nodes=own))
    found: dict[str, Event] = {}
    shared: set[str] = set()
    for own, several in groups.items():
        if len(several) == 1:
            found.update(dict.fromkeys(own, several[0]))
            continue
        matched = _by_kind([node for node in members if node.node.name in own], several)
        found.update(matched)
        shared.update(set(own) - set(matched))
    return found, shared


def _by_kind(nodes: Sequence[FlatNode], events: Sequence[Event]) -> dict[str, Event]:
    """Return node -> event where there are as many events of a kind as nodes that become it."""
    by_kind: dict[str, list[Event]] = {}
    for event in events:
        by_kind.setdefault(event.kind, []).append(event)
    found: dict[str, Event] = {}
    for kind, own in by_kind.items():
        fitting = [node for node in nodes if kind and _is(node.operator, kind)]
        if len(fitting) == len(own):
            for node, event in zip(fitting, own, strict=True):
                name = node.node.name
                found[name] = replace(event, nodes=(name,), inferred=True)
    return found


def _is(operator: str, kind: str) -> bool:
    stem = operator.rpartition("::")[2].split(".")[0]
    if kind in _BECOMES:
        return stem in _BECOMES[kind]
    plain = kind.lower().rstrip("0123456789")
    return stem.strip("_") == _NAMES.get(plain, plain)
