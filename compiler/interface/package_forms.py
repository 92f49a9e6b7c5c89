"""Forms of operators that are core, and that the package decomposes: vendors know the other one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Form = Callable[[tuple[Any, ...], Mapping[str, Any]], Arguments]


def _squeezed(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
    return (args[0], [args[1]]), dict(kwargs)


def _filled(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
    return args, dict(kwargs)


def _corrected(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
    given = dict(zip(("self", "dim", "unbiased", "keepdim"), args, strict=False)) | dict(kwargs)
    kept = {"keepdim": True} if given.get("keepdim") else {}
    own = (given["self"], given["dim"])
    return own, {"correction": int(given.get("unbiased", True)), **kept}


FORMS: dict[str, tuple[str, Form]] = {
    "aten.squeeze_copy.dim": ("aten.squeeze_copy.dims", _squeezed),
    "aten.fill.Scalar": ("aten.full_like.default", _filled),
    "aten.var.dim": ("aten.var.correction", _corrected),
}
"""Name of an operator -> that of the other form, and its arguments and keywords in it."""


def in_package_form(name: str, node: Any) -> str:  # noqa: ANN401 - a node
    """Return the name of the package's form of a node's operator, and give it its arguments.

    Args:
        name: of the operator
        node: changed if there is such a form
    """
    if name not in FORMS or len(node.args) < 2:
        return name
    other, form = FORMS[name]
    node.args, node.kwargs = form(tuple(node.args), node.kwargs)
    return other
