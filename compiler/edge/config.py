"""The documented options of lowering to the edge dialect."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


def _no_operators() -> list[Any]:
    return []


@dataclass(frozen=True)
class EdgeCompileConfig:
    """Configuration of the lowering to an edge program.

    Attributes:
        _check_ir_validity: run the verifier on the result
        _skip_dim_order: keep ``aten`` copies instead of the operators with a dim order
        _core_aten_ops_exception_list: operators outside the core set that are accepted
        preserve_ops: operators that are not decomposed, even if there is a decomposition
        _fold_constants: fold what is computed from weights alone, as a weight norm, before
            partitioners look; ``to_edge`` leaves it
    """

    _check_ir_validity: bool = True
    _skip_dim_order: bool = False
    _core_aten_ops_exception_list: Sequence[Any] | None = field(default_factory=_no_operators)
    preserve_ops: Sequence[Any] | None = field(default_factory=_no_operators)
    _fold_constants: bool = True

    def __post_init__(self) -> None:
        """Check the preserved operators.

        Raises: ValueError naming one that is a view: its result would share memory
        """
        for op in self.preserve_ops or ():
            if getattr(op, "is_view", False):
                raise ValueError(f"Cannot preserve operator {op} because it is a view.")
            if op._schema.is_mutable:
                warnings.warn(
                    f"Preserving the writing operator {op} does nothing: mutations are removed "
                    "before operators are decomposed",
                    stacklevel=3,
                )

    @property
    def check_ir_validity(self) -> bool:
        """Return whether the verifier runs."""
        return self._check_ir_validity

    @property
    def skip_dim_order(self) -> bool:
        """Return whether copies keep a memory format."""
        return self._skip_dim_order

    @property
    def folds_constants(self) -> bool:
        """Return whether expressions of weights are folded."""
        return self._fold_constants

    @property
    def exceptions(self) -> frozenset[Any]:
        """Return the additional operators that the verifier accepts."""
        return frozenset((*(self._core_aten_ops_exception_list or ()), *(self.preserve_ops or ())))

    def with_exceptions(self, ops: Iterable[Any]) -> EdgeCompileConfig:
        """Return a configuration whose verifier accepts further operators."""
        more = sorted(ops, key=str)
        if not more:
            return self
        listed = [*(self._core_aten_ops_exception_list or ()), *more]
        return replace(self, _core_aten_ops_exception_list=listed)
