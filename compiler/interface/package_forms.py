"""Forms of operators that are core, and that the package decomposes: vendors know the other one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from compiler.interface.real_weights import give_real_weights
from schema.vendors.table import vendors_of

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


_POOL = re.compile(r"\baten[.:]+_?(max|avg)_pool[123]d")
_STRIDE = 2  # its place in the schemas of pooling


def for_backend(backend_id: str, program: Any) -> Any:  # noqa: ANN401 - an exported program
    """Return a program that belongs to nothing else, in a form that a vendor's backend reads."""
    if any(one.explicit_strides for one in vendors_of(backend_id)):
        give_strides(program.graph_module)
    if any(one.real_weights for one in vendors_of(backend_id)):
        give_real_weights(program)
    return program


def give_strides(graph_module: Any) -> None:  # noqa: ANN401 - a graph module
    """Write out the strides of pooling that are left to be those of the kernel.

    Some vendors read them from the arguments without the default of the schema.
    """
    for node in graph_module.graph.nodes:
        if node.op != "call_function" or not _POOL.search(str(node.target)):
            continue
        given = node.args[_STRIDE] if len(node.args) > _STRIDE else node.kwargs.get("stride")
        if given not in (None, [], ()):
            continue
        kwargs = {name: value for name, value in node.kwargs.items() if name != "stride"}
        kernel = kwargs.pop("kernel_size", None) or node.args[1]
        node.args = (node.args[0], kernel, kernel, *node.args[_STRIDE + 1 :])
        node.kwargs = kwargs
    graph_module.recompile()


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
