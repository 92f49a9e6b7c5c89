"""The cost of values that enter or leave delegates."""

from __future__ import annotations

from dataclasses import dataclass

QUANTIZING = ("quantize_", "dequantize_", "choose_qparams")  # prefixes of operator names


@dataclass(frozen=True, slots=True)
class Crossing:
    """A value that crosses a boundary.

    Attributes:
        name: of the node that computes it
        kind: dtype and sizes, as in ``float32[1, 3, 8, 8]``
        nbytes: bytes copied or passed; None if a size is unknown
        layout_copies: transpositions of it by the delegate
        quantizing: nodes outside that quantize or dequantize it
    """

    name: str
    kind: str
    nbytes: int | None
    layout_copies: int = 0
    quantizing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Boundary:
    """An edge between two parts of a program, at least one of which is a partition.

    Attributes:
        source: index of the source partition, None outside of partitions
        target: index of the target partition, None outside of partitions
        values: that cross it
        is_end: whether all are inputs or results of the program, so that no rule can remove it
    """

    source: int | None
    target: int | None
    values: tuple[Crossing, ...]
    is_end: bool = False

    @property
    def nbytes(self) -> int | None:
        """Return the bytes of all values, None if a size is unknown."""
        sizes = [value.nbytes for value in self.values]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    @property
    def layout_copies(self) -> int:
        """Return how often a value changes its order in memory for it."""
        return sum(value.layout_copies for value in self.values)

    @property
    def quantizing(self) -> tuple[str, ...]:
        """Return the nodes outside that quantize or dequantize for it."""
        return tuple(dict.fromkeys(name for value in self.values for name in value.quantizing))


def is_quantization(operator: str) -> bool:
    """Return whether an operator quantizes or dequantizes, or chooses how."""
    return any(part.startswith(QUANTIZING) for part in operator.replace("::", ".").split(".")[1:])
