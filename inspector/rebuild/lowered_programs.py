"""Programs recorded after delegation: their delegate calls, and the graphs inside.

The JSON of such a program stores each delegate as a string in the first argument of its call:
payload and lowered program. The call is replaced by a placeholder operator;
an executor runs the inner program there.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from inspector.rebuild.serde_rewrite import DELEGATE, Json, RebuildError, nodes
from inspector.rebuild.torch_bridge import Torch

CALL = "etscope_recorded_delegate"
MOST_DEPTH = 8  # delegates in each other
# program -> name in its calls -> program inside, and JSON of the lowered module
_INSIDE: WeakKeyDictionary[Any, tuple[Mapping[str, Any], Mapping[str, Json]]] = WeakKeyDictionary()


def take_delegates(tree: Json) -> Iterator[tuple[str, Json]]:
    """Replace the delegate calls in a program's JSON by our operator; yield the delegates.

    Each is the name in its call, the JSON of the lowered module (with the name that it has in the
    graph as `name`), and the bytes of its parameters and constants.

    Args:
        tree: changed in place

    Raises: RebuildError for a call without a delegate
    """
    for number, node in enumerate(node for node in nodes(tree) if node["target"] == DELEGATE):
        try:
            argument = node["inputs"][0]["arg"]
            module: Json = json.loads(argument["as_string"])
            module = {**module, "name": node["inputs"][0].get("name", "")}
            module["original_module"]["graph_module"]
            sides = [
                base64.b64decode(module.get(f"original_{name}") or "")
                for name in ("state_dict", "constants")
            ]
        except (KeyError, IndexError, TypeError, ValueError):
            raise RebuildError(
                f"the delegate of {node.get('name', 'a call')} cannot be read"
            ) from None
        name = f"delegate {number}"
        node["inputs"][0]["arg"] = {"as_string": name}
        for given in node["inputs"]:
            given["name"] = ""  # by position
        node["target"] = f"torch.ops.higher_order.{CALL}"
        yield name, (module, sides)


def hold(program: object, inside: Mapping[str, Any], modules: Mapping[str, Json]) -> None:
    """Store the programs inside the delegates of a program, for its lifetime.

    Args:
        program: with our operator instead of the calls
        inside: the program of each, by the name in its call
        modules: the JSON of each
    """
    _INSIDE[program] = dict(inside), dict(modules)


def inside_of(program: object) -> Mapping[str, Any]:
    """Return the programs inside its delegates by the name in their calls."""
    return _INSIDE.get(program, ({}, {}))[0]


def modules_of(program: object) -> Mapping[str, Json]:
    """Return the JSON of its lowered modules by the name in their calls."""
    return _INSIDE.get(program, ({}, {}))[1]


@lru_cache(maxsize=1)
def register() -> Torch:
    """Register the placeholder operator with torch."""
    from torch._ops import HigherOrderOperator

    class RecordedDelegateOperator(HigherOrderOperator):
        def __call__(self, *_arguments: object, **_named: object) -> object:
            raise RuntimeError("a recorded delegate call is run by runtime.emulation")

    return RecordedDelegateOperator(CALL)
