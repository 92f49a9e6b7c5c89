"""States that several methods of a module keep apart, each a copy of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from torch import Tensor
from torch.export import ExportedProgram

from inspector.recipes.emission import config_of

_SHARES = "share_mutable_buffers"
_MOST_NAMES = 3
Programs = Mapping[str, ExportedProgram]


def separate_states(exported: Programs, lowered: Programs, settings: tuple[str, ...]) -> str:
    """Return a warning about a state of one module that its methods do not share, or nothing.

    In eager mode the methods write to one tensor; in a program each of them has its own, unless
    the plan shares it.

    Args:
        exported: programs whose state is still that of the module, by method
        lowered: the same, whose signatures have what they write
        settings: of the plan, NAME=VALUE
    """
    if len(exported) == 1 or config_of(settings)[1].get(_SHARES):
        return ""
    users: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    written = {
        name
        for program in lowered.values()
        for name in program.graph_signature.buffers_to_mutate.values()
    }
    for method, program in exported.items():
        for name in _read(program):
            place = _place(program, name)
            if place:
                users[name, place].append(method)
    parted = {
        name: methods
        for (name, _), methods in users.items()
        if name in written and len(methods) > 1
    }
    if not parted:
        return ""
    methods = sorted({one for found in parted.values() for one in found})
    names = sorted(parted)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (
        f"{' and '.join(methods)} keep {', '.join(names[:_MOST_NAMES])}{more} apart, which is one "
        f"state of their module: --backend-config {_SHARES}=true lets them share it"
    )


def _read(program: ExportedProgram) -> list[str]:
    """Return the buffers that a program uses; the signature has all of the module."""
    names = program.graph_signature.inputs_to_buffers
    inputs = program.graph.find_nodes(op="placeholder")
    return [names[node.name] for node in inputs if node.name in names and node.users]


def _place(program: ExportedProgram, name: str) -> int:
    """Return the address of a buffer's content, 0 for one without."""
    held = program.state_dict.get(name, program.constants.get(name))
    return held.data_ptr() if isinstance(held, Tensor) and held.device.type != "meta" else 0
