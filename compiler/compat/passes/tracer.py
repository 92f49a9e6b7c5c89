"""The new graph of a pass that interprets an old one, with its modules and tensors."""

from __future__ import annotations

from typing import Any

import torch

from compiler.compat.passes.values import ExportPassBaseError, ProxyValue
from compiler.dialect.templates import walk
from compiler.edge.symbols import Symbols
from compiler.errors import UnsupportedError
from compiler.untyped import SYMBOLIC

Node = torch.fx.Node


class ExportTracer:
    """Creates nodes; control-flow bodies, lowered modules and tensors become attributes.

    Attributes:
        root: has the attributes
        graph: the new graph
        fake_tensor_mode: of the values
    """

    def __init__(self, names: dict[int, str], mode: Any) -> None:  # noqa: ANN401
        """Begin an empty graph.

        Args:
            names: of the attributes of the old graph module, by their id, to be used again
            mode: fake tensor mode of the values
        """
        self.root = torch.nn.Module()
        self.graph = torch.fx.Graph()
        self.fake_tensor_mode = mode
        self._names = names
        self._attributes: dict[int, tuple[str, Any]] = {}
        self._nodes: dict[str, Node] = {}
        self._symbols: Symbols | None = None

    def keep_name(self, old: torch.nn.Module, new: torch.nn.Module) -> None:
        """Reuse the name of a replaced module, unless that is still used."""
        name = self._names.get(id(old))
        if name is not None and name not in self._nodes:
            self._names[id(new)] = name

    def create_arg(self, value: Any) -> Any:  # noqa: ANN401
        """Return the node argument of a value.

        Raises: ExportPassBaseError if it is a fake tensor that is not a value of the graph
        """
        return walk(self._leaf, value)

    def _leaf(self, value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, ProxyValue):
            return value.node
        if isinstance(value, torch.fx.Proxy):
            return value.node
        if isinstance(value, torch.nn.Module):
            return self._attribute(value, self._free_module_name(value))
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, SYMBOLIC):
            return self._number(value)
        return value

    def _tensor(self, value: torch.Tensor) -> Node:
        constant = getattr(value, "constant", None)
        if constant is None and hasattr(value, "fake_mode"):
            raise ExportPassBaseError(f"Cannot add {value} to graph.")
        real = value if constant is None else constant
        node = self._attribute(real, self._free_name("_tensor_constant"))
        if "val" not in node.meta:
            node.meta["val"] = self.fake_tensor_mode.from_tensor(real, static_shapes=True)
        return node

    def _number(self, value: Any) -> Any:  # noqa: ANN401
        known: Any = value.node
        if known.constant is not None:
            return known.constant
        if self._symbols is None:
            self._symbols = Symbols(self.graph, dict[str, Any])
            for node in self.graph.nodes:
                if node.op == "placeholder" and "val" in node.meta:
                    self._symbols.learn(node)
        try:
            return self._symbols.node(value)
        except UnsupportedError as error:
            reason = f"{error}; pass the value that has it"
            raise ExportPassBaseError(f"the scalar {value} is symbolic: {reason}") from error

    def _attribute(self, value: Any, name: str) -> Node:  # noqa: ANN401
        known = self._attributes.get(id(value))
        if known is None:
            name = self._names.get(id(value), name)
            if isinstance(value, torch.nn.Module):
                self.root.add_module(name, value)
            else:
                self.root.register_buffer(name, value)
            # keeps it alive, so its id is not reused
            self._attributes[id(value)] = known = (name, value)
        # The body of a call and its operands are read where they are used.
        return self._read(known[0])

    def _read(self, name: str) -> Node:
        if name not in self._nodes:
            self._nodes[name] = self.graph.create_node("get_attr", name, name=name)
        return self._nodes[name]

    def _free_module_name(self, module: torch.nn.Module) -> str:
        lowered = type(module).__name__ == "LoweredBackendModule"
        return self._free_name("lowered_module_" if lowered else "submodule_")

    def _free_name(self, prefix: str) -> str:
        taken = {*self._names.values(), *(name for name, _ in self._attributes.values())}
        return next(f"{prefix}{i}" for i in range(len(taken) + 1) if f"{prefix}{i}" not in taken)
