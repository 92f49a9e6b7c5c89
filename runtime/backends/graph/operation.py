"""What a table of operators returns for a payload node: a function and its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from schema.graph import Graph, GraphNode, GraphValue


@dataclass(frozen=True, slots=True)
class Fixed:
    """An operand that no node computes.

    Attributes:
        value: a scalar, a list, a string or None
    """

    value: Any


Operand: TypeAlias = "str | Fixed | tuple[Operand, ...]"
"""Name of a value, a literal, or a list of both."""


@dataclass(frozen=True, slots=True)
class Operation:
    """The call of a node.

    Attributes:
        run: returns the results, as one tensor or a sequence
        operands: its positional arguments
        main: index of the result that is the node's value, among several
        blocks: engines of the nested blocks of a branch or a loop
    """

    run: Callable[..., Any]
    operands: tuple[Operand, ...]
    main: int = 0
    blocks: tuple[Any, ...] = ()


Bind: TypeAlias = Callable[[GraphNode, Graph], "Operation | None"]
"""Returns the call of a node, None for an operator that is not in the table."""


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """The operators of a payload format.

    Attributes:
        bind: of a computing node
        dtypes: torch dtypes of values whose dtype torch lacks, by its name
        unpack: by dtype name, returns the elements of a constant that torch cannot view
        once: whether a node is computed when the payload is loaded: all it reads are constants
        state_writes: constant of a graph -> the value of a run that it has in the next one
    """

    bind: Bind
    dtypes: Mapping[str, torch.dtype] = field(default_factory=dict[str, torch.dtype])
    unpack: Mapping[str, Callable[[GraphValue, memoryview], torch.Tensor]] = field(
        default_factory=dict[str, Callable[[GraphValue, memoryview], torch.Tensor]]
    )
    once: Callable[[GraphNode], bool] | None = None
    state_writes: Callable[[Graph], Mapping[str, str]] = field(default=lambda _: {})
