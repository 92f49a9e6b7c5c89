"""The base of passes that interpret a graph and replace it operator by operator.

The new graph is traced with fake tensors as it grows. An operator called unchanged, with
unchanged values, keeps its value; only changed nodes are recomputed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from compiler.compat.passes.tracer import ExportTracer as Tracer
from compiler.compat.passes.values import ExportPassBaseError, NodeMetadata, ProxyValue
from compiler.dialect.delegate_call import executorch_call_delegate
from compiler.dialect.ops import EdgeOp, edge_op
from compiler.dialect.templates import walk
from compiler.errors import at
from compiler.passes.base import PassBase, PassResult
from compiler.passes.fake import fake_mode_of, fake_result, fake_run, same_kind
from compiler.untyped import HigherOrderOperator, OpOverload, OpOverloadPacket

Node = torch.fx.Node
Argument = Any  # a ProxyValue, a literal, a module, or lists of them
_LINEAGE = ("stack_trace", "nn_module_stack", "from_node", "debug_handle", "delegation_tag")
_PLAIN_MODULES = frozenset(("_operator", "builtins", "math", "torch", "torch.functional"))


class _LocatedError(ExportPassBaseError):
    """An error whose message already names the node."""


class ExportPass(PassBase):
    """Interprets a graph; operators are kept unless a subclass overrides their method.

    Every hook returns a ``ProxyValue`` of the new graph. One operator becomes several by calling
    ``super().call_operator`` several times, and none by returning one of the arguments.
    Without an input graph, a subclass may create a tracer and call the hooks to build one.
    """

    class ExportTracer(Tracer):
        """A new graph, as a subclass creates it that builds one."""

        def __init__(self, callback: ExportPass, codegen: object = None) -> None:
            del codegen  # of the code that torch prints; accepted as documented
            super().__init__({}, callback.fake_tensor_mode)

    fake_tensor_mode: Any = None
    tracer: Any = None
    _node: Any = None

    def __init__(self) -> None:
        self._initialized = True

    @property
    def node_debug_str(self) -> str | None:
        """Return the current node as a string."""
        return None if self._node is None else self._node.format_node()

    def call(self, graph_module: torch.fx.GraphModule) -> Argument:
        """Return the new graph module; the given one is not changed.

        Raises: ExportPassBaseError naming the node that cannot be walked over
        """
        if not getattr(self, "_initialized", False):
            raise ExportPassBaseError(
                f"{type(self).__name__}.__init__ does not call super().__init__()"
            )
        self.fake_tensor_mode = fake_mode_of(graph_module.graph.nodes)
        with fake_run(self.fake_tensor_mode):
            return self.call_submodule(graph_module, tuple(self.inputs(graph_module)))

    def inputs(self, graph_module: torch.fx.GraphModule) -> list[Any]:
        """Return the fake values of the placeholders.

        Raises: ExportPassBaseError if a used one has none
        """
        return [_input(node) for node in graph_module.graph.nodes if node.op == "placeholder"]

    def should_preserve_symbolic_input_metadata(self) -> bool:
        """Return whether symbolic sizes of inputs must be preserved."""
        return True

    def call_submodule(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Argument:
        """Return the result of interpreting a graph, or a body of control flow, on these inputs."""
        before = self.tracer, self._node
        names = {id(module): name for name, module in graph_module.named_children()}
        self.tracer = Tracer(names, self.fake_tensor_mode)
        try:
            self._walk(graph_module, [_data(value) for value in inputs])
            built = torch.fx.GraphModule(self.tracer.root, self.tracer.graph)
        finally:
            self.tracer, self._node = before
        if self.should_preserve_symbolic_input_metadata():
            _require_sizes_kept(graph_module.graph, built.graph)
        built.meta = dict(graph_module.meta)
        if self.tracer is not None:
            self.tracer.keep_name(graph_module, built)
        return PassResult(built, True)

    def _walk(self, module: torch.fx.GraphModule, inputs: list[Any]) -> None:
        built: dict[Node, Any] = {}

        def new(leaf: Argument) -> Argument:
            return built[leaf] if isinstance(leaf, Node) else leaf

        values = iter(inputs)
        for node in module.graph.nodes:
            self._node = node
            args, kwargs = walk(new, (tuple(node.args), dict(node.kwargs)))
            try:
                built[node] = self._visit(module, node, args, kwargs, values)
            except _LocatedError:
                raise
            except ExportPassBaseError as error:
                raise _LocatedError(f"{error}: {at(node)}") from error

    def _visit(
        self,
        module: torch.fx.GraphModule,
        node: Node,
        args: Argument,
        kwargs: dict[str, Any],
        values: Argument,
    ) -> Argument:
        meta = NodeMetadata(node.meta)
        if node.op == "call_function":
            return self._call_function(node.target, args, kwargs, meta)
        if node.op == "placeholder":
            return self.placeholder(str(node.target), next(values), meta)
        if node.op == "output":
            return self.output(args[0], meta)
        if node.op == "get_attr":
            return self.get_attr(str(node.target), _attribute(module, str(node.target)), meta)
        raise ExportPassBaseError(f"{node.op} is not supported.")

    def _call_function(
        self,
        target: Argument,
        args: Argument,
        kwargs: dict[str, Any],
        meta: NodeMetadata,
    ) -> Argument:
        if target is operator.getitem:
            return self.call_getitem(args[0], args[1], meta)
        if target is executorch_call_delegate:
            return self.call_delegate(args[0], tuple(args[1:]), kwargs, meta)
        if _is_number_function(target):
            return self.call_sym(target, args, meta)
        if isinstance(target, (EdgeOp, OpOverload, OpOverloadPacket)):
            return self.call_operator(target, args, kwargs, meta)
        if not isinstance(target, HigherOrderOperator):
            raise ExportPassBaseError(f"Unsupported target type: {target}")
        control: dict[str, Callable[..., Argument]] = {
            "cond": self.call_cond,
            "while_loop": self.call_while,
            "map_impl": self.call_map,
            "scan": self.call_scan,
        }
        call = control.get(getattr(target, "__name__", ""))
        if call is not None:
            return call(*args, meta)
        return self._fx("call_function", target, args, kwargs, meta)

    def _fx(
        self,
        kind: str,
        target: Argument,
        args: Argument,
        kwargs: dict[str, Any],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """Create one node of the new graph and compute its value."""
        value = self._value(target, args, kwargs) if kind == "call_function" else None
        new_args, new_kwargs = self.tracer.create_arg((tuple(args), dict(kwargs)))
        old: Any = self._node
        name = old.name if old is not None and old.target is target else None
        node = self.tracer.graph.create_node(kind, target, new_args, new_kwargs, name)
        node.meta = self._metadata(meta)
        if kind == "call_function":
            node.meta["val"] = value
        return ProxyValue(value, node)

    def _metadata(self, meta: Argument) -> dict[str, Any]:
        given = dict(getattr(meta, "data", meta) or {})
        if self._node is not None:
            for key in _LINEAGE:
                if key in self._node.meta:
                    given.setdefault(key, self._node.meta[key])
        return given

    def _value(self, target: Argument, args: Argument, kwargs: dict[str, Any]) -> Argument:
        old: Any = self._node
        known = old.meta.get("val") if old is not None and old.target is target else None
        if known is not None and _unchanged(old, args, kwargs):
            return known
        data, named = walk(_data, (tuple(args), dict(kwargs)))
        try:
            value = fake_result(target, data, named)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            shown = getattr(target, "__name__", target)
            raise ExportPassBaseError(f"{shown} cannot be called like this ({error})") from error
        # Equal results keep the old value, so that later values need not be recomputed.
        return known if known is not None and same_kind(known, value) else value

    def placeholder(self, name: str, arg: Argument, meta: NodeMetadata) -> ProxyValue:
        """Return an input of the new graph."""
        node = self.tracer.graph.placeholder(name)
        if self._node is not None and name == str(self._node.target):
            node.name = self._node.name
        node.meta = {**meta.data, "val": arg}
        return ProxyValue(arg, node)

    def get_attr(self, name: str, value: Argument, meta: NodeMetadata) -> Argument:
        """Return a body, a lowered module or a tensor that the graph names."""
        del name, meta
        return value

    def on_attr(self, attr: ProxyValue) -> None:
        """Handle a tensor that became an attribute of the new graph."""

    def call_operator(
        self,
        op: Argument,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """Return the result of an operator."""
        return self._fx("call_function", op, args, kwargs, meta)

    def call_size_operator(
        self,
        tensor_proxy: ProxyValue,
        dim: int,
        meta: NodeMetadata,
        *,
        edge_dialect: bool = False,
    ) -> ProxyValue | int:
        """Return a size of a tensor: an integer, or the result of ``sym_size`` for a dynamic one.

        Args:
            tensor_proxy: the tensor
            dim: which dimension
            meta: of a new node
            edge_dialect: whether the node's operator is that of the edge dialect
        """
        sizes: Any = tensor_proxy.data.shape
        if isinstance(sizes[dim], int):
            return int(sizes[dim])
        op = torch.ops.aten.sym_size.int
        return self.call_operator(
            edge_op(op) if edge_dialect else op, (tensor_proxy, dim), {}, meta
        )

    def call_size_operator_all(
        self, tensor_proxy: ProxyValue, meta: NodeMetadata, *, edge_dialect: bool = False
    ) -> list[ProxyValue | int]:
        """Return all sizes of a tensor, each as ``call_size_operator`` does."""
        return [
            self.call_size_operator(tensor_proxy, dim, meta, edge_dialect=edge_dialect)
            for dim in range(tensor_proxy.data.dim())
        ]

    def call_sym(
        self, target: Callable[..., Any], args: tuple[Any, ...], meta: NodeMetadata
    ) -> ProxyValue:
        """Return the result of arithmetic with sizes."""
        return self._fx("call_function", target, args, {}, meta)

    def call_getitem(self, value: Argument, key: int, meta: NodeMetadata) -> ProxyValue:
        """Return one of several results."""
        if isinstance(value, (tuple, list)):  # results returned by an override of call_operator
            return cast("Sequence[ProxyValue]", value)[key]
        return self._fx("call_function", operator.getitem, (value, key), {}, meta)

    def call_delegate(
        self,
        lowered_module: Argument,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """Return the results of a delegate."""
        given = (lowered_module, *args)
        return self._fx("call_function", executorch_call_delegate, given, kwargs, meta)

    def call_cond(
        self,
        pred: Argument,
        true_fn: Argument,
        false_fn: Argument,
        inputs: Sequence[Any],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """Return the results of a condition whose branches have been walked too."""
        bodies = [self.call_submodule(body, inputs).graph_module for body in (true_fn, false_fn)]
        return self._control("cond", (pred, *bodies, inputs), meta)

    def call_while(
        self,
        cond_fn: Argument,
        body_fn: Argument,
        carried_inputs: Sequence[Any],
        additional_inputs: Sequence[Any],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """Return the results of a loop whose condition and body have been walked too."""
        inputs = (*carried_inputs, *additional_inputs)
        bodies = [self.call_submodule(body, inputs).graph_module for body in (cond_fn, body_fn)]
        return self._control("while_loop", (*bodies, carried_inputs, additional_inputs), meta)

    def call_map(
        self,
        f: Argument,
        mapped_args: Sequence[Any],
        operands: Sequence[Any],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """Return the results of a map whose body has been walked too."""
        body = self.call_submodule(f, self.inputs(f)).graph_module
        return self._control("map_impl", (body, mapped_args, operands), meta)

    def call_scan(
        self,
        combine_fn: Argument,
        init: Sequence[Any],
        xs: Sequence[Any],
        additional_inputs: Sequence[Any],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """Return the results of a scan whose body has been walked too."""
        body = self.call_submodule(combine_fn, self.inputs(combine_fn)).graph_module
        return self._control("scan", (body, init, xs, additional_inputs), meta)

    def _control(self, name: str, args: tuple[Any, ...], meta: NodeMetadata) -> ProxyValue:
        """Create a call with bodies; its results are those of the call it replaces."""
        target: Any = getattr(torch.ops.higher_order, name)
        new_args, _ = self.tracer.create_arg((args, {}))
        value = self._node.meta["val"]
        node = self.tracer.graph.create_node("call_function", target, new_args, {}, self._node.name)
        node.meta = {**self._metadata(meta), "val": value}
        return ProxyValue(value, node)

    def output(self, results: Argument, meta: NodeMetadata) -> Argument:
        """Create the results of the new graph."""
        node = self.tracer.graph.output(self.tracer.create_arg(results))
        node.meta = dict(meta.data)
        return ProxyValue(None, node)


def _require_sizes_kept(before: torch.fx.Graph, after: torch.fx.Graph) -> None:
    """Refuse inputs with changed symbolic sizes or scalars: guards depend on them.

    Raises: ExportPassBaseError with the position, the sizes and the new ones
    """
    old, new = (_symbols(graph) for graph in (before, after))
    for at_input, (name, symbols) in enumerate(old):
        found = new[at_input][1] if at_input < len(new) else ["no input"]
        if any(symbols) and symbols != found:
            raise ExportPassBaseError(
                f"Input at position {at_input} did not preserve symbolic metadata: {name} "
                f"had {_shown(symbols)} and has {_shown(found)}; a pass that means to override "
                "sizes returns False from should_preserve_symbolic_input_metadata"
            )


def _symbols(graph: torch.fx.Graph) -> list[tuple[str, list[str]]]:
    """Return name and symbolic sizes or scalar of each input, empty for a static one."""
    found: list[tuple[str, list[str]]] = []
    for node in graph.nodes:
        if node.op == "placeholder":
            texts: list[str] = []
            walk(lambda leaf, texts=texts: texts.extend(_symbols_of(leaf)), node.meta.get("val"))
            found.append((node.name, texts))
    return found


def _symbols_of(leaf: Argument) -> list[str]:
    if isinstance(leaf, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return [str(leaf)]
    sizes: list[Any] = list(leaf.shape) if isinstance(leaf, torch.Tensor) else []
    texts = [str(size) if isinstance(size, torch.SymInt) else "" for size in sizes]
    return texts if any(texts) else []


def _shown(symbols: Sequence[str]) -> str:
    return f"[{', '.join(text or 'fixed' for text in symbols)}]" if symbols else "no symbolic size"


def _input(node: Node) -> Argument:
    if "val" in node.meta:
        return node.meta["val"]
    if not node.users:
        return None
    raise ExportPassBaseError(f"the input {node.name} has no `val` to trace with")


def _attribute(module: torch.nn.Module, name: str) -> Argument:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _is_number_function(target: Argument) -> bool:
    if isinstance(target, (EdgeOp, OpOverload, OpOverloadPacket, HigherOrderOperator)):
        return False
    return getattr(target, "__module__", None) in _PLAIN_MODULES


def _data(leaf: Argument) -> Argument:
    return leaf.data if isinstance(leaf, ProxyValue) else leaf


def _unchanged(old: Argument, args: Argument, kwargs: dict[str, Any]) -> bool:
    given: list[Any] = []
    known: list[Any] = []
    walk(given.append, (tuple(args), dict(kwargs)))
    walk(known.append, (tuple(old.args), dict(old.kwargs)))
    return len(given) == len(known) and all(map(_same_leaf, given, known))


def _same_leaf(given: Argument, known: Argument) -> bool:
    if isinstance(known, Node):
        return isinstance(given, ProxyValue) and given.data is known.meta.get("val")
    if isinstance(given, (ProxyValue, torch.Tensor)):
        return False
    return type(given) is type(known) and given == known
