"""Values of passes that interpret a graph: proxies with their nodes, and metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from compiler.errors import CompileError
from compiler.untyped import SYMBOLIC

PROTECTED_KEYS = frozenset(
    ("val", "stack_trace", "nn_module_stack", "debug_handle", "tensor_meta", "from_node")
)


class ExportPassBaseError(CompileError):
    """A pass requested an invalid graph operation."""


class NodeMetadata:
    """The metadata of a pass's current node; its provenance is read-only."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = dict(data)

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401
        return self.data[key]

    def __setitem__(self, key: str, value: Any) -> None:  # noqa: ANN401
        if key in PROTECTED_KEYS:
            raise RuntimeError(f"Could not override node key: {key}")
        self.data[key] = value

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401
        """Return an entry, or the default."""
        return self.data.get(key, default)

    def copy(self) -> NodeMetadata:
        """Return a mutable copy of the metadata."""
        return NodeMetadata(self.data)


class ProxyValue:
    """A value of the new graph: a fake tensor or scalar, and its node.

    Attributes:
        data: the fake value
        node: the node of the new graph
    """

    def __init__(self, data: Any, node: Any) -> None:  # noqa: ANN401
        self.data = data
        self.node: torch.fx.Node = node if isinstance(node, torch.fx.Node) else node.node

    @property
    def proxy_or_node(self) -> torch.fx.Node:
        """Return the node."""
        return self.node

    @property
    def proxy(self) -> torch.fx.Proxy:
        """Return the node as a proxy of torch."""
        return torch.fx.Proxy(self.node)

    def to_tensor(self) -> torch.Tensor:
        """Return the fake tensor.

        Raises: ExportPassBaseError if the value is not a tensor
        """
        if not isinstance(self.data, torch.Tensor):
            raise ExportPassBaseError(f"{self.node.name} is not a tensor but {self.data!r}")
        return self.data

    def is_tensor(self) -> bool:
        """Return whether the value is a tensor."""
        return isinstance(self.data, torch.Tensor)

    def __iter__(self) -> Iterator[Any]:
        yield from self.data

    def __bool__(self) -> bool:
        return bool(self._number("used in a boolean context"))

    def __int__(self) -> int:
        return int(self._number("converted to int"))

    def __float__(self) -> float:
        return float(self._number("converted to float"))

    def __index__(self) -> int:
        return int(self._number("used in index context"))

    def __repr__(self) -> str:
        return f"ProxyValue({self.node.name}, {self.data})"

    def _number(self, use: str) -> Any:  # noqa: ANN401
        if isinstance(self.data, SYMBOLIC):
            raise ExportPassBaseError(
                f"{self.node.name} is symbolic ({self.data}) and cannot be {use}"
            )
        return self.data
