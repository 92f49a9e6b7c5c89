"""The quantizer: configurations by operator, module and node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, final

import torch

from compiler.backends.xnnpack.quantizer.annotation import (
    LAYERS,
    OPERATORS,
    annotate,
    is_annotated,
    pass_on,
)
from compiler.backends.xnnpack.quantizer.configs import get_symmetric_quantization_config
from compiler.backends.xnnpack.quantizer.torchao import (
    OperatorConfig,
    Quantizer,
    get_module_name_filter,
)
from compiler.untyped import aten

Node = torch.fx.Node
Config = Any  # a QuantizationConfig of torchao
NodeFilter = Callable[[Node], bool]
_SCALED = frozenset((aten.add.Tensor, aten.mul.Tensor))


def _supported() -> list[Any]:
    functional = torch.nn.functional
    patterns: list[list[list[Any]]] = [
        [
            [torch.nn.Conv2d, torch.nn.ReLU],
            [torch.nn.Conv2d, functional.relu],
            [functional.conv2d, torch.nn.ReLU],
            [functional.conv2d, functional.relu],
        ],
        [[torch.nn.Linear], [functional.linear]],
        [[torch.add]],
        [[torch.nn.AdaptiveAvgPool2d], [functional.adaptive_avg_pool2d]],
    ]
    configs = [
        get_symmetric_quantization_config(is_per_channel=channels, is_qat=qat)
        for channels in (False, True)
        for qat in (False, True)
    ]
    return [OperatorConfig(config, pattern) for config in configs for pattern in patterns]


@final
class XNNPACKQuantizer(Quantizer):
    """Annotates graphs for ``prepare_pt2e``.

    A node is quantized by the first of: its name, a module it is in by path, by type, its
    operator, and the global configuration; nodes in a named module, or one of a named type, follow
    only that. None leaves a part unquantized. The setters return the quantizer.
    """

    supported_config_and_operators: ClassVar[list[Any]] = _supported()

    def __init__(self) -> None:
        self.global_config: Config | None = None
        self.operator_type_config: dict[Any, Config | None] = {}
        self.module_type_config: dict[Callable[..., Any], Config | None] = {}
        self.module_name_config: dict[str, Config | None] = {}
        self.node_name_config: dict[str, Config | None] = {}
        self.filter_fn: NodeFilter | None = None

    @classmethod
    def get_supported_quantization_configs(cls) -> list[Config]:
        """Return the configurations that are documented as supported."""
        found: list[Config] = []
        for config, _ in cls.supported_config_and_operators:
            if config not in found:
                found.append(config)
        return found

    @classmethod
    def get_supported_operator_for_quantization_config(
        cls, quantization_config: Config | None
    ) -> list[Any]:
        """Return the patterns of operators of a configuration, None for those of all."""
        return [
            pattern
            for config, patterns in cls.supported_config_and_operators
            if quantization_config is None or config == quantization_config
            for pattern in patterns
        ]

    @classmethod
    def get_supported_operators(cls) -> list[Any]:
        """Return configurations with patterns of operators."""
        return cls.supported_config_and_operators

    def set_global(self, quantization_config: Config) -> XNNPACKQuantizer:
        """Set the configuration of all nodes without a more specific one."""
        self.global_config = quantization_config
        return self

    def set_operator_type(
        self,
        operator_type: Any,  # noqa: ANN401 - an overload or a packet of them
        quantization_config: Config | None,
    ) -> XNNPACKQuantizer:
        """Set the configuration of an operator."""
        self.operator_type_config[operator_type] = quantization_config
        return self

    def set_module_type(
        self, module_type: Callable[..., Any], quantization_config: Config | None
    ) -> XNNPACKQuantizer:
        """Set the configuration of modules of a class."""
        self.module_type_config[module_type] = quantization_config
        return self

    def set_module_name(
        self, module_name: str, quantization_config: Config | None
    ) -> XNNPACKQuantizer:
        """Set the configuration of a module, by its path as in ``blocks.0``."""
        self.module_name_config[module_name] = quantization_config
        return self

    def set_node_name(self, name: str, quantization_config: Config | None) -> XNNPACKQuantizer:
        """Set the configuration of a node, by its name in the exported program."""
        self.node_name_config[name] = quantization_config
        return self

    def set_filter_function(self, filter_fn: NodeFilter) -> XNNPACKQuantizer:
        """Quantize only nodes for which a function returns True."""
        self.filter_fn = filter_fn
        return self

    def transform_for_annotation(self, model: torch.fx.GraphModule) -> torch.fx.GraphModule:
        """Replace scalar operands of arithmetic by tensors, which are quantized too.

        Applies to float32 only: a float in place of an integer would change the result's dtype.
        """
        for node in [n for n in model.graph.nodes if n.target in _SCALED and _is_float32(n)]:
            node.args = tuple(
                arg if isinstance(arg, Node) else _as_tensor(model, node, arg) for arg in node.args
            )
        model.recompile()
        return model

    def annotate(self, model: torch.fx.GraphModule) -> torch.fx.GraphModule:
        """Annotate the nodes of a graph."""
        named = [(get_module_name_filter(n), c) for n, c in self.module_name_config.items()]
        typed = [(_in_type(t), config) for t, config in self.module_type_config.items()]
        nodes = list(model.graph.nodes)
        # Layers first: they determine their activation, which a preceding add must not claim.
        for kinds in (LAYERS, OPERATORS - LAYERS):
            for node in nodes:
                if node.target not in kinds or is_annotated(node):
                    continue
                config = self._config_for(node, [*named, *typed])
                if config is not None and (self.filter_fn is None or self.filter_fn(node)):
                    annotate(node, config)
        pass_on(nodes)
        return model

    def _config_for(
        self, node: Node, scopes: list[tuple[NodeFilter, Config | None]]
    ) -> Config | None:
        if node.name in self.node_name_config:
            return self.node_name_config[node.name]
        for is_inside, config in scopes:
            if is_inside(node):
                return config
        for target in (node.target, getattr(node.target, "overloadpacket", None)):
            if target in self.operator_type_config:
                return self.operator_type_config[target]
        return self.global_config

    def validate(self, model: torch.fx.GraphModule) -> None:
        """Accept every graph: operators without annotation stay in floating point."""


def _in_type(kind: Callable[..., Any]) -> NodeFilter:
    name = f"{kind.__module__}.{kind.__qualname__}"

    def is_inside(node: Node) -> bool:
        stack: Any = node.meta.get("nn_module_stack", {})
        return any(
            (f"{t.__module__}.{t.__qualname__}" if isinstance(t, type) else t) == name
            for _, t in stack.values()
        )

    return is_inside


def _is_float32(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype is torch.float32


def _as_tensor(model: torch.fx.GraphModule, node: Node, number: float) -> Node:
    """Return a node that reads a scalar stored as a buffer."""
    count = 0
    while hasattr(model, f"_tensor_constant_{count}"):
        count += 1
    name, tensor = f"_tensor_constant_{count}", torch.tensor(float(number))
    model.register_buffer(name, tensor)
    with model.graph.inserting_before(node):
        built = model.graph.create_node("get_attr", name)
    built.meta["val"] = node.meta["val"].fake_mode.from_tensor(tensor, static_shapes=True)
    return built
