"""The verifier of edge programs, run after lowering and after passes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch._export.verifier import SpecViolationError, Verifier
from torch.export.graph_signature import ExportGraphSignature

from compiler.dialect.dim_order import NAMESPACE, is_contiguous
from compiler.dialect.dtype_rules import dtype_rule_of
from compiler.dialect.layout import changes_order, takes_layouts
from compiler.dialect.ops import EdgeOp
from compiler.dialect.templates import tensors_in, walk
from compiler.edge.config import EdgeCompileConfig
from compiler.errors import at
from compiler.untyped import HigherOrderOperator, OpOverload, aten

Node = torch.fx.Node
_CORE_TAGS = {torch.Tag.core, torch.Tag.view_copy}
# Outside the core set of torch, but with kernels in the runtime or required unchanged.
_LET_THROUGH = frozenset(
    (
        aten.mkldnn_rnn_layer.default,
        aten._upsample_bilinear2d_aa.default,
        aten.quantize_per_tensor.default,
        aten.dequantize.self,
        aten.max.default,
        aten.min.default,
        aten.full_like.default,
    )
)
_MEMORY_FORMATS = {
    aten._to_copy.default: "_to_dim_order_copy",
    aten.clone.default: "_clone_dim_order",
    aten.empty.memory_format: "_empty_dim_order",
}
_NUMBERS = ("aten::sym_", "aten::_local_scalar_dense")
_NUMBER_MODULES = frozenset(("_operator", "math"))
_NUMBER_FUNCTIONS: frozenset[Any] = frozenset((abs, round, pow, min, max))
_SHOWN = 10  # violations that an error lists


_registry: dict[str, Any] = cast("Any", type(Verifier))._registry
_OF_OTHERS = dict(_registry)


def _unregistered(built: type[Verifier]) -> type[Verifier]:
    """Return a verifier that torch does not find by its dialect: the stock one has that too."""
    _registry.pop(built.dialect, None)
    if built.dialect in _OF_OTHERS:
        _registry[built.dialect] = _OF_OTHERS[built.dialect]
    return built


@_unregistered
class EdgeVerifier(Verifier):
    """Accepts everything that lowering may emit, with any operators."""

    dialect = "EDGE"

    def allowed_op_types(self) -> tuple[type[Any], ...]:
        """Return the kinds of call targets."""
        return (*super().allowed_op_types(), EdgeOp)


@functools.lru_cache(maxsize=64)
def _strict_verifier(exceptions: frozenset[Any], skip_dim_order: bool) -> type[Verifier]:
    class StrictEdgeVerifier(EdgeVerifier):
        """Accepts core ATen operators and the exceptions of the configuration."""

        dialect = "EDGE"

        def check_additional(self, gm: torch.fx.GraphModule) -> None:
            _Checks(exceptions, skip_dim_order).run(gm)

    return _unregistered(StrictEdgeVerifier)


def verifier_for(config: EdgeCompileConfig) -> type[Verifier]:
    """Return the verifier of a configuration."""
    if not config.check_ir_validity:
        return EdgeVerifier
    return _strict_verifier(config.exceptions, config.skip_dim_order)


def check_program(
    module: torch.fx.GraphModule,
    signature: ExportGraphSignature,
    config: EdgeCompileConfig,
    after: str = "",
) -> None:
    """Check a graph and its signature.

    Args:
        module: an edge graph
        signature: of the graph
        config: exceptions; does nothing if validity checks are off
        after: the pass that produced the graph, for the message

    Raises: SpecViolationError with every violation, its operator, arguments and source line
    """
    if config.check_ir_validity:
        _Checks(config.exceptions, config.skip_dim_order, after).run(module, signature)


def operator_fault(op: EdgeOp, config: EdgeCompileConfig) -> str:
    """Return why an operator may not be in an edge program, empty if it may."""
    return _Checks(config.exceptions, config.skip_dim_order).operator_fault(op)


class _Checks:
    """Collects the violations of one program."""

    def __init__(self, exceptions: frozenset[Any], skip_dim_order: bool, after: str = "") -> None:
        self._exceptions = exceptions
        self._skip_dim_order = skip_dim_order
        self._after = f"after the pass {after}: " if after else ""
        self._of_operator: dict[EdgeOp, str] = {}
        self._accepted: set[Any] = set()
        self._strided: set[Node] = set()  # nodes whose tensor is not contiguous

    def run(
        self, module: torch.fx.GraphModule, signature: ExportGraphSignature | None = None
    ) -> None:
        """Check all graphs of a module, without those of delegates."""
        found = list(self._of_graph(module))
        if signature is not None:
            found += _of_signature(module.graph, signature)
        if not found:
            return
        shown = "\n".join(found[:_SHOWN])
        more = f"\n... and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise SpecViolationError(f"{self._after}{shown}{more}")

    def _of_graph(self, module: torch.fx.GraphModule) -> Iterator[str]:
        seen: set[Node] = set()
        calls = False
        for node in module.graph.nodes:
            for reads in node.all_input_nodes:
                if reads not in seen:
                    yield f"{_shown(node)} uses {reads.name} before it is computed"
            if node.op == "placeholder" and calls:
                yield f"the placeholder {node.name} follows a call: {at(node)}"
            calls = calls or node.op == "call_function"
            seen.add(node)
            if not self._skip_dim_order and _is_strided(node.meta.get("val")):
                self._strided.add(node)
            yield from self._of_node(module, node)

    def _of_node(self, module: torch.fx.GraphModule, node: Node) -> Iterator[str]:
        if node.op in ("call_module", "call_method"):
            yield f"{node.op} {node.target} is not valid in an edge program: {at(node)}"
        elif node.op == "get_attr":
            yield from self._of_attribute(module, node)
        elif node.op in ("call_function", "placeholder") and "val" not in node.meta:
            yield f"{_shown(node)} has no `val`: {at(node)}"
        elif node.op == "call_function":
            fault = self._fault(node)
            if fault:
                yield f"{fault}: {_shown(node)}, {at(node)}"

    def _of_attribute(self, module: torch.fx.GraphModule, node: Node) -> Iterator[str]:
        found: Any = module
        for part in str(node.target).split("."):
            found = getattr(found, part, None)
        if isinstance(found, torch.fx.GraphModule):
            yield from self._of_graph(found)
        elif type(found).__name__ != "LoweredBackendModule":
            what = "nothing" if found is None else f"a {type(found).__name__}"
            yield (
                f"the attribute {node.target} is {what}; only bodies of control flow and lowered "
                f"modules may be attributes: {at(node)}"
            )

    def _fault(self, node: Node) -> str:
        target: Any = node.target
        if not isinstance(target, EdgeOp):
            return _fault_of_other(target)
        fault = self._of_operator.get(target)
        if fault is None:
            fault = self._of_operator[target] = self.operator_fault(target)
        if fault and target.op is aten.linear.default and _shares_weight(node):
            fault = ""
        return fault or self._dtype_fault(node, target) or self._layout_fault(node, target)

    def operator_fault(self, target: EdgeOp) -> str:
        """Return why an operator is not allowed, empty if it is allowed."""
        below = target.op
        if below in self._exceptions:
            return ""
        if below._schema.is_mutable:
            return f"Operator {target.name()} writes in place"
        if self._skip_dim_order and below.namespace == NAMESPACE:
            return f"{target.name()} should not be used in non-dim_order mode"
        instead = None if self._skip_dim_order else _MEMORY_FORMATS.get(below)
        if instead is not None:
            return (
                f"{target.name()} should not be used in dim_order mode: it names a memory format; "
                f"dim_order_ops::{instead} names a dim order"
            )
        if below.namespace != "aten" or _CORE_TAGS & set(below.tags) or below in _LET_THROUGH:
            return ""
        return (
            f"Operator {target.name()} is not in the Core ATen opset. Accept it with "
            f"EdgeCompileConfig(_core_aten_ops_exception_list=[torch.ops.{below}]) if the backend "
            "or the runtime has a kernel for it, export under torch.no_grad() if it belongs to "
            "training, or report it to PyTorch as missing from the core set"
        )

    def _dtype_fault(self, node: Node, target: EdgeOp) -> str:
        rule = dtype_rule_of(target.op)
        if rule is None:
            return ""
        given = (*zip(_names_of(target.op), node.args, strict=False), *node.kwargs.items())
        dtypes = [(name, _dtype(value)) for name, value in given]
        value = node.meta["val"]
        several = not isinstance(value, torch.Tensor)
        results = [t.dtype for t in tensors_in(value)] if several else [value.dtype]
        key = target, *dtypes, *results
        if key in self._accepted:
            return ""
        inputs = {name: dtype for name, dtype in dtypes if dtype is not None}
        if rule.accepts(inputs, results):
            self._accepted.add(key)
            return ""
        shown = ", ".join(f"{name}: {_short(dtype)}" for name, dtype in inputs.items())
        returned = ", ".join(map(_short, results))
        fault = "is taking Tensor inputs with mismatched dtypes"
        return f"{target.name()} {fault} ({shown}) -> {returned}"

    def _layout_fault(self, node: Node, target: EdgeOp) -> str:
        usual = node not in self._strided and self._strided.isdisjoint(node.all_input_nodes)
        if usual or target.op.namespace != "aten":
            return ""
        tensors: Any = walk(_value, tuple(node.args))
        if changes_order(target.op, tensors, node.meta["val"]):
            return f"{target.name()} returns a dim order different from that of its input"
        if takes_layouts(target.op, tensors):
            return ""
        odd = next(t for t in tensors_in(tensors) if not is_contiguous(t))
        return (
            f"{target.name()} supports contiguous tensors only, one of its inputs has strides "
            f"{tuple(odd.stride())}; copy it with dim_order_ops::_to_dim_order_copy"
        )


def _shares_weight(node: Node) -> bool:
    """Return whether a linear layer is one of ours: before planning, for the room of its weight.

    It reads a packed table, or a weight that another operator reads, too.
    """
    weight = node.args[1]
    if not isinstance(weight, Node):
        return False
    packed = getattr(weight.target, "namespace", "") == "quantized_decomposed"
    return packed or (weight.op == "placeholder" and len(weight.users) > 1)


def _fault_of_other(target: Any) -> str:  # noqa: ANN401
    if isinstance(target, OpOverload):
        return (
            ""
            if target.name().startswith(_NUMBERS)
            else f"Operator {target} is not an Edge operator"
        )
    if target is operator.getitem or isinstance(target, HigherOrderOperator):
        return ""
    name, home = getattr(target, "__name__", ""), getattr(target, "__module__", None)
    if home in _NUMBER_MODULES or target in _NUMBER_FUNCTIONS:
        return ""
    if home == "torch" and name.startswith("sym_"):
        return ""
    return f"{target} is not an operator of edge programs"


def _of_signature(graph: torch.fx.Graph, signature: ExportGraphSignature) -> list[str]:
    named = [spec.arg.name for spec in signature.input_specs]
    found = [node.name for node in graph.nodes if node.op == "placeholder"]
    if named == found:
        return []
    lost, added = [n for n in named if n not in found], [n for n in found if n not in named]
    if not lost and not added:
        return [f"the order of the placeholders differs from the signature: {', '.join(found)}"]
    parts = [f"no placeholder for {', '.join(lost)}"] if lost else []
    parts += [f"no input of the program for the placeholders {', '.join(added)}"] if added else []
    return ["; ".join(parts)]


def _is_strided(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, torch.Tensor) and not is_contiguous(value)


@functools.cache
def _names_of(op: Any) -> tuple[str, ...]:  # noqa: ANN401
    return tuple(argument.name for argument in op._schema.arguments)


def _value(leaf: Any) -> Any:  # noqa: ANN401
    return leaf.meta.get("val") if isinstance(leaf, Node) else leaf


def _dtype(value: Any) -> torch.dtype | None:  # noqa: ANN401
    if isinstance(value, Node):
        value = value.meta.get("val")
    elif isinstance(value, (list, tuple)):
        items: list[Any] = [*cast("Any", value)]
        return next((d for d in map(_dtype, items) if d is not None), None)
    return value.dtype if isinstance(value, torch.Tensor) else None


def _short(dtype: Any) -> str:  # noqa: ANN401
    return str(dtype).removeprefix("torch.")


def _shown(node: Node) -> str:
    """Return an operator and its arguments, such as ``aten.add.Tensor(x: float32[2])``."""
    if node.op != "call_function":
        return f"{node.op} {node.name}"
    args = [*map(_described, node.args), *(f"{k}={_described(v)}" for k, v in node.kwargs.items())]
    return f"{getattr(node.target, '__name__', node.target)}({', '.join(args)})"


def _described(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, (list, tuple)):
        items: list[Any] = [*cast("Any", value)]
        return f"[{', '.join(map(_described, items))}]"
    if not isinstance(value, Node):
        return str(value)
    known = value.meta.get("val")
    if not isinstance(known, torch.Tensor):
        return value.name
    sizes = ", ".join(map(str, known.shape))
    return f"{value.name}: {_short(known.dtype)}[{sizes}]"
