"""Operators of native payloads beside torch: one node each, in the format of its serializer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import pytest
import torch

from runtime.backends.native import NativeBackend
from runtime.delegates.interface import DelegateTracer
from runtime.memory.slots import CODE_OF
from schema import payloads
from schema.flatbuf.writer import write_root
from schema.payloads.native import tables as t
from tests.runtime.operators.cases import Case, all_cases
from tests.runtime.operators.inputs import Maker

pytestmark = pytest.mark.slow

_CODES = {code: number for number, code in t.SCALAR_TYPES.items()}
DTYPES = (torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool)
_BOUND = {torch.float16: 4e-3}
Meta = t.TensorMeta


class Writer:
    """Collects the values and arguments of one node."""

    def __init__(self) -> None:
        self.given: dict[str, torch.Tensor] = {}
        self.values: list[t.TensorValue] = []

    def tensor(self, value: torch.Tensor, name: str = "") -> str:
        given = name or f"x{len(self.given)}"
        sizes = tuple(t.Dim(size, size) for size in value.shape)
        order = tuple(range(value.dim()))
        meta = Meta(_CODES[CODE_OF[value.dtype]], sizes, order)
        self.values.append(t.TensorValue(given, meta))
        if not name:
            self.given[given] = value
        return given

    def argument(self, value: Any, kind: str) -> Any:
        if isinstance(value, torch.Tensor):
            return t.TensorArg(self.tensor(value))
        if value is None:
            return t.NoneArg()
        if isinstance(value, torch.dtype):
            return t.ScalarTypeArg(_CODES[CODE_OF[value]])
        if isinstance(value, bool):
            return t.BoolArg(value)
        if isinstance(value, str):
            return t.StringArg(value)
        if isinstance(value, (int, float)):
            whole = isinstance(value, int) and kind not in ("float", "Optional[float]")
            return t.IntArg(int(value)) if whole else t.FloatArg(float(value))
        return self._listed(value, kind)

    def _listed(self, value: Any, kind: str) -> Any:
        if "Optional[Tensor]" in kind:
            names = tuple("" if one is None else self.tensor(one) for one in value)
            return t.OptionalTensorListArg(names, tuple(one is not None for one in value))
        if "Tensor" in kind:
            return t.TensorListArg(tuple(map(self.tensor, value)))
        if "float" in kind:
            return t.FloatListArg(tuple(map(float, value)))
        if "bool" in kind:
            return t.BoolListArg(tuple(value))
        return t.IntListArg(tuple(value))


def payload(operator: Any, writer: Writer, arguments: list[Any], results: list[Any]) -> bytes:
    entries = operator._schema.arguments
    inputs = tuple(
        t.NamedArgument(
            entry.name,
            t.Argument(writer.argument(value, str(getattr(entry, "real_type", entry.type)))),
        )
        for entry, value in zip(entries, arguments, strict=True)
    )
    names = [writer.tensor(one, f"y{at}") for at, one in enumerate(results)]
    outputs = tuple(t.Output(name, "", t.TENSOR) for name in names)
    if str(operator._schema.returns[0].type).startswith("List"):
        outputs = (t.Output("", "", t.TENSOR_LIST, tuple(names)),)
    target = f"torch.ops.{operator}"
    node = t.Node("node", t.CALL, target, inputs, outputs)
    graph = t.Graph((node,), tuple(writer.given), tuple(names), tuple(writer.values))
    return write_root(t.PROGRAM, t.Program("1", (t.Method("forward", graph),)), b"NPTG")


def functional(name: str) -> Any:
    """Return the functional overload of an operator with an out argument, None without one."""
    space, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, space), base, None)
    out = getattr(packet, overload or "default", None)
    if out is None or space != "aten":
        return None
    wanted = [(one.name, str(one.type)) for one in out._schema.arguments if not one.is_out]
    for each in packet.overloads():
        found = getattr(packet, each)
        own = [(one.name, str(one.type)) for one in found._schema.arguments]
        writes = any(one.alias_info and one.alias_info.is_write for one in found._schema.arguments)
        if own == wanted and not writes:
            return found
    return None


def calls(name: str, dtype: torch.dtype) -> Iterator[tuple[Any, list[Any], list[torch.Tensor]]]:
    """Yield operator, arguments and what torch computes in float32, rounded as payloads are."""
    operator = functional(name)
    if operator is None:
        return
    torch.manual_seed(3)
    for entry in all_cases()[name](Maker(dtype)):
        arguments = entry.arguments if isinstance(entry, Case) else entry
        if len(arguments) != len(operator._schema.arguments):
            continue
        if any(_is_complex(one) for one in arguments):
            continue
        try:
            plain = operator(*arguments)
            half = dtype is torch.float16
            made = operator(*map(_wide, arguments)) if half else plain
        except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
            continue
        found, types = (
            list(one) if isinstance(one, (tuple, list)) else [one] for one in (made, plain)
        )
        if all(isinstance(one, torch.Tensor) and one.dtype in CODE_OF for one in types):
            pairs = zip(found, types, strict=True)
            if all(CODE_OF[one.dtype] in _CODES for one in types):
                yield operator, arguments, [one.to(like.dtype) for one, like in pairs]


def _is_complex(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_complex()


def _wide(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype is torch.float16:
        return value.float()
    return [*map(_wide, value)] if isinstance(value, list) else value


def ran(data: bytes, writer: Writer) -> list[torch.Tensor]:
    decoded = payloads.decode("NativeBackend", data)
    assert not decoded.issues
    engine = NativeBackend().engine(decoded, 0)
    given = [*writer.given.values()]
    return cast("list[torch.Tensor]", engine.run(given, DelegateTracer(None, (0, 0))))


# Without a result that is the same in each run, or of complex numbers, which the format lacks.
RANDOM = (
    "rand",
    "dropout",
    "empty",
    "multinomial",
    "bernoulli",
    "normal",
    "_conj",
    "view_as",
    "fft",
)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "name", [name for name in sorted(all_cases()) if not any(word in name for word in RANDOM)]
)
def test_operator_computes_what_torch_does(name: str, dtype: torch.dtype) -> None:
    for operator, arguments, expected in calls(name, dtype):
        if not all(_is_written(one) for one in arguments):
            continue
        writer = Writer()
        found = ran(payload(operator, writer, arguments, expected), writer)
        assert len(found) == len(expected)
        for mine, other in zip(found, expected, strict=True):
            assert mine.dtype == other.dtype
            bound = _BOUND.get(dtype, 1e-6) if other.is_floating_point() else 0.0
            torch.testing.assert_close(mine, other, rtol=bound, atol=bound, equal_nan=True)


def _is_written(value: Any) -> bool:
    """Return whether the format has a value: it has neither complex tensors nor wide integers."""
    if isinstance(value, torch.Tensor):
        return CODE_OF.get(value.dtype, -1) in _CODES
    if isinstance(value, list):
        return all(map(_is_written, value))
    return not isinstance(value, float) or math.isfinite(value) or value > 0


def test_most_operators_are_tried() -> None:
    tried = {name for name in all_cases() if any(True for _ in calls(name, torch.float32))}
    assert len(tried) > 150


def test_dimension_without_an_index_stays_where_it_is() -> None:
    x, index = torch.arange(12).reshape(3, 4), torch.tensor([3, 0])
    for arguments in ([None, index], [index % 3, None], [index % 3, index]):
        writer = Writer()
        data = payload(
            torch.ops.aten.index.Tensor,
            writer,
            [x, arguments],
            [cast("torch.Tensor", torch.ops.aten.index.Tensor(x, arguments))],
        )
        (found,) = ran(data, writer)
        assert torch.equal(found, torch.ops.aten.index.Tensor(x, arguments))


def test_sizes_that_are_values_stand_between_constant_ones() -> None:
    writer = Writer()
    x = torch.arange(12)
    entry = writer.tensor(x)
    result = writer.tensor(x.reshape(3, 4), "y")
    inputs = (
        t.NamedArgument("self", t.Argument(t.TensorArg(entry))),
        t.NamedArgument("size", t.Argument(t.IntListArg((0, 4), ("rows", "")))),
    )
    target = "torch.ops.aten.view_copy.default"
    node = t.Node("view", t.CALL, target, inputs, (t.Output(result, "", t.TENSOR),))
    graph = t.Graph((node,), (entry, "rows"), (result,), tuple(writer.values))
    data = write_root(t.PROGRAM, t.Program("1", (t.Method("forward", graph),)), b"NPTG")
    engine = NativeBackend().engine(payloads.decode("NativeBackend", data), 0)
    (found,) = engine.run([x, 3], DelegateTracer(None, (0, 0)))
    assert torch.equal(found, x.reshape(3, 4))
