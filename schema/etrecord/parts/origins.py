"""Origins: the recorded node of each instruction, if the compiler that wrote both stored it.

Several nodes may share a debug handle, so a handle alone is ambiguous. A record stores origins as
JSON under a name that the stock tool does not read as a graph.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from schema.errors import FormatError

MEMBER = "etscope/origins_constants"
VERSION = 1
_Names = dict[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins of one method; a node in a nested graph is called ``cond/0/NAME``.

    The prefix is the node that has the nested graph and the index among its graphs.

    Attributes:
        nodes: instruction that calls a kernel -> the recorded node
        results: instruction that calls a delegate -> the recorded values it returns
        inside: instruction that calls a delegate -> identifier that it logs -> nodes
    """

    nodes: dict[int, str] = field(default_factory=dict[int, str])
    results: _Names = field(default_factory=dict[int, tuple[str, ...]])
    inside: dict[int, dict[str, tuple[str, ...]]] = field(
        default_factory=dict[int, dict[str, tuple[str, ...]]]
    )


def encode_origins(methods: Mapping[str, Origins]) -> bytes:
    """Return the origins by method as JSON."""
    content = {
        method: {"nodes": found.nodes, "results": found.results, "inside": found.inside}
        for method, found in methods.items()
    }
    return json.dumps({"version": VERSION, "methods": content}).encode()


def decode_origins(tree: Any, file: str = "") -> Mapping[str, Origins]:  # noqa: ANN401 - parsed JSON
    """Return the origins by method.

    Raises: FormatError if structure or version of the JSON is unknown
    """
    try:
        if tree["version"] != VERSION:
            raise FormatError(f"version {VERSION}", str(tree["version"]), field=MEMBER, file=file)
        methods = cast("dict[str, dict[str, Any]]", tree["methods"])
        return {
            method: Origins(
                {int(step): _text(name) for step, name in each["nodes"].items()},
                _names(each["results"]),
                {int(step): _by_identity(inner) for step, inner in each["inside"].items()},
            )
            for method, each in methods.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError("origins by method", str(error), field=MEMBER, file=file) from None


def _names(tree: dict[str, Any]) -> _Names:
    return {int(step): tuple(map(_text, names)) for step, names in tree.items()}


def _by_identity(tree: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(map(_text, names)) for key, names in tree.items()}


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a node, found {name!r}")
    return name
