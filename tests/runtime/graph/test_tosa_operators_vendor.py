"""Each operator of TOSA 1.0 alone beside the reference model, by dtype; needs tosa-tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from runtime.backends.tosa import TosaBackend
from runtime.delegates.interface import DelegateTracer
from schema import payloads
from schema.payloads.tosa.ops import OPERATORS

pytestmark = pytest.mark.vendor
ts: Any = pytest.importorskip("tosa_serializer", reason="tosa-tools is not installed")
model: Any = pytest.importorskip("tosa_reference_model", reason="tosa-tools is not installed")

FLOAT, INT8, INT16, INT32, INT48, BOOL = "FP32", "INT8", "INT16", "INT32", "INT48", "BOOL"
TORCH = {
    FLOAT: torch.float32,
    INT8: torch.int8,
    INT16: torch.int16,
    INT32: torch.int32,
    BOOL: torch.bool,
    INT48: torch.int64,
}
PROPAGATE, IGNORE = ts.NanPropagationMode.PROPAGATE, ts.NanPropagationMode.IGNORE
RUNS = 3


@dataclass
class Case:
    """A graph of one operator.

    Attributes:
        op: its name
        inputs: dtype and shape of each
        result: dtype and shape
        constants: further operands: dtype, shape, values
        attribute: arguments of its attribute
        given: returns the inputs, by default random ones over the range of their dtypes
        results: of operators with two of them
    """

    op: str
    inputs: list[tuple[str, list[int]]]
    result: tuple[str, list[int]]
    constants: list[tuple[str, list[int], list[Any]]] = field(default_factory=list)
    attribute: tuple[Any, ...] = ()
    given: Callable[[str, list[int]], torch.Tensor] | None = None
    results: int = 1

    @property
    def label(self) -> str:
        """Return the name of the case."""
        kinds = "-".join(kind for kind, _ in self.inputs)
        sizes = "x".join(map(str, self.inputs[0][1]))
        return (
            f"{self.op}-{kinds}-{sizes}-{self.result[0]}-{'.'.join(map(str, self.attribute))[:60]}"
        )

    def payload(self) -> bytes:
        """Return the flatbuffer."""
        writer = ts.TosaSerializer("", targetMinor=0, targetDraft=False)
        names = [
            writer.addPlaceholder(list(shape), getattr(ts.DType, kind), None).name
            for kind, shape in self.inputs
        ]
        names += [
            writer.addConst(list(shape), getattr(ts.DType, kind), values).name
            for kind, shape, values in self.constants
        ]
        kind, shape = self.result
        add = writer.addIntermediate if kind == INT48 else writer.addOutput
        outputs = [add(list(shape), getattr(ts.DType, kind)).name for _ in range(self.results)]
        attribute = ts.TosaSerializerAttribute()
        known = [name for name in dir(attribute) if name.lower() == f"{_plain(self.op)}attribute"]
        getattr(attribute, known[0])(*self.attribute)
        writer.addOperator(getattr(ts.Op, self.op), names, outputs, attribute)
        if kind == INT48:  # the model returns no such tensors: their sums fit 32 bits
            _narrow(writer, outputs[0], shape)
        return bytes(writer.serialize())


def _narrow(writer: Any, name: str, shape: list[int]) -> None:
    constants = [(INT16, 1 << 14), (INT8, 14), (INT48, 0), (INT32, 0)]
    names = [writer.addConst([1], getattr(ts.DType, kind), [one]).name for kind, one in constants]
    made = writer.addOutput(list(shape), ts.DType.INT32).name
    attribute = ts.TosaSerializerAttribute()
    attribute.RescaleAttribute(False, ts.RoundingMode.SINGLE_ROUND, False, False, False)
    writer.addOperator(ts.Op.RESCALE, [name, *names], [made], attribute)


def _plain(op: str) -> str:
    return op.lower().replace("_", "")


def _random(kind: str, shape: list[int]) -> torch.Tensor:
    if kind == FLOAT:
        found = torch.randn(shape) * 4
        if found.numel() > 3:
            found.view(-1)[:3] = torch.tensor([0.0, -0.0, 1e-7])
        return found
    if kind == BOOL:
        return torch.rand(shape) > 0.5
    edge = torch.iinfo(TORCH[kind])
    low, high = (edge.min, edge.max) if kind != INT32 else (-(1 << 20), 1 << 20)
    found = torch.randint(low, high + 1, shape).to(TORCH[kind])
    if found.numel() > 2:
        found.view(-1)[:2] = torch.tensor([low, high]).to(TORCH[kind])
    return found


def _positive(kind: str, shape: list[int]) -> torch.Tensor:
    found = _random(kind, shape).abs()
    return found + 0.05 if kind == FLOAT else found.clamp(min=1)


def _below(limit: int) -> Callable[[str, list[int]], torch.Tensor]:
    def given(kind: str, shape: list[int]) -> torch.Tensor:
        if kind == INT32 and len(shape) == 2:  # indices
            return torch.stack([torch.randperm(limit)[: shape[1]] for _ in range(shape[0])]).int()
        return _random(kind, shape)

    return given


def _shifts(kind: str, shape: list[int]) -> torch.Tensor:
    bits = 8 * torch.iinfo(TORCH[kind]).bits // 8
    return torch.randint(0, bits, shape).to(TORCH[kind])


S = [2, 3, 4]
ZERO = [0]
FLOAT_UNARY = ["CEIL", "COS", "ERF", "EXP", "FLOOR", "SIGMOID", "SIN", "TANH", "ABS"]
POSITIVE = ["LOG", "RECIPROCAL", "RSQRT"]


def _zeros(kind: str, count: int) -> list[tuple[str, list[int], list[Any]]]:
    return [(kind, [1], ZERO)] * count


def _elementwise() -> list[Case]:
    found = [Case(op, [(FLOAT, S)], (FLOAT, S)) for op in FLOAT_UNARY]
    found += [Case(op, [(FLOAT, S)], (FLOAT, S), given=_positive) for op in POSITIVE]
    found += [Case("POW", [(FLOAT, S), (FLOAT, S)], (FLOAT, S), given=_positive)]
    for kind in (FLOAT, INT32):
        for op in ("ADD", "SUB"):
            found.append(Case(op, [(kind, S), (kind, [1, 3, 1])], (kind, S)))
        for op in ("MAXIMUM", "MINIMUM"):
            found.append(Case(op, [(kind, S), (kind, S)], (kind, S), attribute=(PROPAGATE,)))
        for op in ("EQUAL", "GREATER", "GREATER_EQUAL"):
            found.append(Case(op, [(kind, S), (kind, [2, 1, 4])], (BOOL, S)))
    found.append(Case("ABS", [(INT32, S)], (INT32, S)))
    found.append(Case("CLZ", [(INT32, S)], (INT32, S)))
    found.append(Case("INTDIV", [(INT32, S), (INT32, S)], (INT32, S), given=_positive))
    found.append(Case("MUL", [(FLOAT, S), (FLOAT, S)], (FLOAT, S), _zeros(INT8, 1)))
    for kind in (INT8, INT16):
        found.append(Case("MUL", [(kind, S), (kind, S)], (INT32, S), _zeros(INT8, 1)))
    found.append(Case("MUL", [(INT32, S), (INT32, S)], (INT32, S), [(INT8, [1], [20])]))
    return found


def _bits() -> list[Case]:
    found: list[Case] = []
    for op in ("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR"):
        found += [Case(op, [(kind, S), (kind, S)], (kind, S)) for kind in (INT8, INT16, INT32)]
    found += [Case("BITWISE_NOT", [(kind, S)], (kind, S)) for kind in (INT8, INT16, INT32)]
    for op in ("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR"):
        found.append(Case(op, [(BOOL, S), (BOOL, S)], (BOOL, S)))
    found.append(Case("LOGICAL_NOT", [(BOOL, S)], (BOOL, S)))
    for kind in (INT8, INT16, INT32):
        for op in ("LOGICAL_LEFT_SHIFT", "LOGICAL_RIGHT_SHIFT"):
            found.append(Case(op, [(kind, S), (kind, S)], (kind, S), given=_shifts))
        for rounded in (False, True):
            found.append(
                Case(
                    "ARITHMETIC_RIGHT_SHIFT",
                    [(kind, S), (kind, S)],
                    (kind, S),
                    [],
                    (rounded,),
                    _shifts,
                )
            )
    return found


def _choices() -> list[Case]:
    found: list[Case] = []
    for kind in (FLOAT, INT8, INT16, INT32, BOOL):
        found.append(Case("SELECT", [(BOOL, S), (kind, S), (kind, S)], (kind, S)))
        found.append(Case("IDENTITY", [(kind, S)], (kind, S)))
    for kind in (FLOAT, INT8, INT16, INT32):
        found.append(Case("NEGATE", [(kind, S)], (kind, S), _zeros(kind, 2)))
    found.append(Case("NEGATE", [(INT8, S)], (INT8, S), [(INT8, [1], [-7]), (INT8, [1], [9])]))
    return found


def _shapes() -> list[Case]:
    found: list[Case] = []
    for kind in (FLOAT, INT8, INT16, INT32, BOOL):
        found += [
            Case("CONCAT", [(kind, S), (kind, [2, 5, 4])], (kind, [2, 8, 4]), [], (1,)),
            Case("RESHAPE", [(kind, S)], (kind, [6, 4]), [("SHAPE", [2], [6, 4])]),
            Case("REVERSE", [(kind, S)], (kind, S), [], (1,)),
            Case(
                "SLICE",
                [(kind, S)],
                (kind, [1, 2, 3]),
                [("SHAPE", [3], [1, 0, 1]), ("SHAPE", [3], [1, 2, 3])],
            ),
            Case("TILE", [(kind, S)], (kind, [2, 6, 8]), [("SHAPE", [3], [1, 2, 2])]),
            Case("TRANSPOSE", [(kind, S)], (kind, [4, 2, 3]), [], ([2, 0, 1],)),
            Case(
                "PAD",
                [(kind, S)],
                (kind, [3, 6, 6]),
                [("SHAPE", [6], [1, 0, 2, 1, 0, 2]), (kind, [1], [1])],
            ),
        ]
        if kind != BOOL:
            found.append(
                Case(
                    "GATHER",
                    [(kind, [2, 5, 3]), (INT32, [2, 4])],
                    (kind, [2, 4, 3]),
                    given=_below(5),
                )
            )
            found.append(
                Case(
                    "SCATTER",
                    [(kind, [2, 5, 3]), (INT32, [2, 4]), (kind, [2, 4, 3])],
                    (kind, [2, 5, 3]),
                    given=_below(5),
                )
            )
    return found


def _reductions() -> list[Case]:
    found: list[Case] = []
    for axis in (0, 2):
        out = [1 if dim == axis else size for dim, size in enumerate(S)]
        for op in ("REDUCE_ALL", "REDUCE_ANY"):
            found.append(Case(op, [(BOOL, S)], (BOOL, out), [], (axis,)))
        for op in ("REDUCE_MAX", "REDUCE_MIN"):
            found += [
                Case(op, [(kind, S)], (kind, out), [], (axis, PROPAGATE))
                for kind in (FLOAT, INT8, INT16, INT32)
            ]
        found.append(Case("REDUCE_PRODUCT", [(FLOAT, S)], (FLOAT, out), [], (axis,)))
        found += [
            Case("REDUCE_SUM", [(kind, S)], (kind, out), [], (axis,)) for kind in (FLOAT, INT32)
        ]
        flat = [size for dim, size in enumerate(S) if dim != axis]
        found += [
            Case("ARGMAX", [(kind, S)], (INT32, flat), [], (axis, PROPAGATE))
            for kind in (FLOAT, INT8, INT16)
        ]
    return found


def _values(kind: str, count: int) -> list[Any]:
    return _random(kind, [count]).tolist()


def _convolutions() -> list[Case]:
    found: list[Case] = []
    x, dtypes = [1, 9, 7, 3], ((FLOAT, FLOAT, FLOAT), (INT8, INT8, INT32), (INT16, INT8, INT48))
    for kind, weight, result in dtypes:
        own = getattr(ts.DType, result)
        zeros = [(kind, [1], [3 if kind == INT8 else 0]), (weight, [1], ZERO)]
        bias = (result, [4], [5, -6, 7, 1])
        for pad, stride, dilation, out in (
            ([1, 1, 1, 1], [1, 1], [1, 1], [1, 9, 7, 4]),
            ([2, 0, 1, 1], [2, 2], [1, 1], [1, 5, 4, 4]),
            ([2, 2, 2, 2], [1, 1], [2, 2], [1, 9, 7, 4]),
        ):
            attribute = (pad, stride, dilation, False, own)
            taps = (weight, [4, 3, 3, 3], _values(weight, 108))
            found.append(
                Case("CONV2D", [(kind, x)], (result, out), [taps, bias, *zeros], attribute)
            )
            deep = (weight, [3, 3, 3, 2], _values(weight, 54))
            wide = (result, [6], [1, 2, 3, 4, 5, 6])
            found.append(
                Case(
                    "DEPTHWISE_CONV2D",
                    [(kind, x)],
                    (result, [*out[:3], 6]),
                    [deep, wide, *zeros],
                    attribute,
                )
            )
        cube = (weight, [2, 2, 3, 3, 3], _values(weight, 108))
        found.append(
            Case(
                "CONV3D",
                [(kind, [1, 4, 6, 6, 3])],
                (result, [1, 3, 6, 6, 2]),
                [cube, (result, [2], [1, 2]), *zeros],
                ([0, 0, 1, 1, 1, 1], [1, 1, 1], [1, 1, 1], False, own),
            )
        )
        back = (weight, [4, 3, 3, 3], _values(weight, 108))
        found.append(
            Case(
                "TRANSPOSE_CONV2D",
                [(kind, [1, 4, 5, 3])],
                (result, [1, 10, 10, 4]),
                [back, bias, *zeros],
                ([0, 1, -1, 0], [2, 2], False, own),
            )
        )
    return found


def _matmuls() -> list[Case]:
    found: list[Case] = []
    for kind, result, zeros in ((FLOAT, FLOAT, (0, 0)), (INT8, INT32, (2, -3))):
        points: list[tuple[str, list[int], list[Any]]] = [(kind, [1], [one]) for one in zeros]
        sides = [(kind, [2, 3, 5]), (kind, [2, 5, 4])]
        found.append(Case("MATMUL", sides, (result, [2, 3, 4]), points))
    return found


def _images() -> list[Case]:
    found: list[Case] = []
    x = [1, 7, 9, 3]
    pools = (
        ([3, 3], [2, 2], [1, 1, 1, 1], [1, 4, 5, 3]),
        ([2, 3], [1, 2], [0, 1, 2, 0], [1, 7, 5, 3]),
    )
    for kernel, stride, pad, out in pools:
        for kind in (FLOAT, INT8, INT16):
            found.append(
                Case("MAX_POOL2D", [(kind, x)], (kind, out), [], (kernel, stride, pad, PROPAGATE))
            )
            sums = ts.DType.FP32 if kind == FLOAT else ts.DType.INT32
            zero = 0 if kind != INT8 else 4
            found.append(
                Case(
                    "AVG_POOL2D",
                    [(kind, x)],
                    (kind, out),
                    [(kind, [1], [zero]), (kind, [1], [zero])],
                    (kernel, stride, pad, sums),
                )
            )
    return found


def _resizes() -> list[Case]:
    found: list[Case] = []
    for mode, kinds in (
        ("NEAREST", {INT8: INT8, INT16: INT16}),
        ("BILINEAR", {INT8: INT32, INT16: INT48}),
    ):
        for kind, result in ({FLOAT: FLOAT} | kinds).items():
            for scale, offset, border in (
                ([4, 2, 4, 2], [0, 0], [0, 0]),
                ([4, 2, 6, 2], [-1, -2], [1, 2]),
                ([2, 3, 2, 3], [0, 0], [0, 0]),
            ):
                out = [
                    ((size - 1) * scale[2 * axis] - offset[axis] + border[axis])
                    // scale[2 * axis + 1]
                    + 1
                    for axis, size in enumerate((5, 4))
                ]
                if any(
                    ((size - 1) * scale[2 * axis] - offset[axis] + border[axis])
                    % scale[2 * axis + 1]
                    for axis, size in enumerate((5, 4))
                ):
                    continue
                lists = [("SHAPE", [4], scale), ("SHAPE", [2], offset), ("SHAPE", [2], border)]
                found.append(
                    Case(
                        "RESIZE",
                        [(kind, [1, 5, 4, 2])],
                        (result, [1, *out, 2]),
                        lists,
                        (getattr(ts.ResizeMode, mode),),
                    )
                )
    return found


def _transforms() -> list[Case]:
    found: list[Case] = []
    found.append(
        Case(
            "FFT2D",
            [(FLOAT, [1, 4, 8]), (FLOAT, [1, 4, 8])],
            (FLOAT, [1, 4, 8]),
            [],
            (False, False),
            results=2,
        )
    )
    found.append(
        Case(
            "FFT2D",
            [(FLOAT, [1, 4, 8]), (FLOAT, [1, 4, 8])],
            (FLOAT, [1, 4, 8]),
            [],
            (True, False),
            results=2,
        )
    )
    found.append(Case("RFFT2D", [(FLOAT, [1, 4, 8])], (FLOAT, [1, 4, 5]), [], (False,), results=2))
    return found


def _quantized() -> list[Case]:
    found: list[Case] = []
    bound = {FLOAT: torch.float32, INT8: torch.int8, INT16: torch.int16}
    for kind, dtype in bound.items():
        low, high = (torch.tensor([one], dtype=dtype).view(torch.uint8).tolist() for one in (-3, 5))
        found.append(Case("CLAMP", [(kind, S)], (kind, S), [], (low, high, PROPAGATE)))
    for kind, result in (
        (INT8, INT8),
        (INT8, INT32),
        (INT16, INT16),
        (INT32, INT8),
        (INT32, INT16),
        (INT16, INT8),
    ):
        for rounding in ("SINGLE_ROUND", "DOUBLE_ROUND"):
            for channels in (False, True):
                count = 4 if channels else 1
                factors = [(1 << 30) + 12345 * place for place in range(count)]
                shifts = [30 + place + (8 if kind == INT32 else 0) for place in range(count)]
                zeros = [
                    (kind, [1], [5 if kind == INT8 else 0]),
                    (result, [1], [-4 if result == INT8 else 0]),
                ]
                found.append(
                    Case(
                        "RESCALE",
                        [(kind, S)],
                        (result, S),
                        [(INT32, [count], factors), (INT8, [count], shifts), *zeros],
                        (True, getattr(ts.RoundingMode, rounding), channels, False, False),
                    )
                )
    found.append(Case("TABLE", [(INT8, S)], (INT8, S), [(INT8, [256], _values(INT8, 256))]))
    found.append(
        Case("TABLE", [(INT16, S)], (INT32, S), [(INT16, [513], sorted(_values(INT16, 513)))])
    )
    casts = (
        (FLOAT, INT8),
        (FLOAT, INT16),
        (FLOAT, INT32),
        (INT8, FLOAT),
        (INT16, FLOAT),
        (INT32, FLOAT),
        (INT8, INT16),
        (INT8, INT32),
        (INT16, INT32),
        (INT16, INT8),
        (INT32, INT8),
        (INT32, INT16),
        (BOOL, INT8),
        (BOOL, INT32),
        (INT8, BOOL),
        (INT32, BOOL),
    )
    found += [Case("CAST", [(kind, S)], (result, S)) for kind, result in casts]
    return found


torch.manual_seed(0)
CASES = [
    *_elementwise(),
    *_bits(),
    *_choices(),
    *_shapes(),
    *_reductions(),
    *_convolutions(),
    *_matmuls(),
    *_images(),
    *_resizes(),
    *_transforms(),
    *_quantized(),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_operator_equals_the_reference_model(case: Case) -> None:
    data = case.payload()
    engine = TosaBackend().engine(payloads.decode("TOSABackend", memoryview(data)), 0)
    for seed in range(RUNS):
        torch.manual_seed(seed)
        inputs = [(case.given or _random)(kind, shape) for kind, shape in case.inputs]
        made = engine.run(list(inputs), DelegateTracer(None, (0, 0)))
        expected, status = model.run(data, [one.numpy() for one in inputs])
        assert str(status).endswith("TOSA_VALID"), status
        for own, right in zip(made, expected, strict=True):
            found = torch.from_numpy(right).reshape(own.shape)
            if own.is_floating_point():
                torch.testing.assert_close(own, found, rtol=1e-5, atol=1e-5, equal_nan=True)
            else:
                assert torch.equal(own.long(), found.long())


def test_every_operator_has_a_case() -> None:
    # Blocks and variables: test_tosa_control.py; constants are part of most cases.
    elsewhere = "CONST CONST_SHAPE COND_IF WHILE_LOOP VARIABLE VARIABLE_READ VARIABLE_WRITE CUSTOM"
    of_release_1_0 = OPERATORS[: OPERATORS.index("CONST_SHAPE") + 1]
    assert {case.op for case in CASES} | set(elsewhere.split()) == set(of_release_1_0)
