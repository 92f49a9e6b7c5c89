"""The operands of the TOSA instructions of a SPIR-V module: attributes first, then inputs.

Source: the extended instruction set TOSA.001000.1, whose attributes are those of the flatbuffer,
but for the numbers of types of accumulators
"""

from __future__ import annotations

from schema.payloads.tosa.ops import ATTRIBUTE_NAMES

# Inputs that are lists of integers, by their place among the inputs.
SHAPES: dict[str, tuple[int, ...]] = {
    "PAD": (1,),
    "RESHAPE": (1,),
    "RESIZE": (1, 2, 3),
    "SLICE": (1, 2),
    "TILE": (1,),
}
# Names of the types of accumulators by their number, which are others than in the flatbuffer.
ACCUMULATORS = ("unknown", "int32", "float16", "float32", "int48")


def attributes_of(target: str) -> tuple[str, ...]:
    """Return the names of an instruction's attributes, in the order of its operands."""
    names = ATTRIBUTE_NAMES.get(target, ())
    if names[-2:] == ("local_bound", "acc_type"):
        return (*names[:-2], "acc_type", "local_bound")
    return names
