"""Debug buffers: tensors by offset, sizes and strides, of every element type."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from schema import etdump
from schema.dtypes.scalar_type import BY_NAME
from schema.errors import FormatError
from schema.etdump import DebugEvent, DebugTensor, DebugValue, ValueType, debug_buffer
from schema.etdump.build import dump, run
from tests.conftest import DATA
from tests.oracle.client import Oracle

TYPES = [
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bfloat16",
    "bool", "uint16", "uint32", "uint64",
    "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz",
]  # fmt: skip
SESSIONS = sorted(path.parent for path in DATA.rglob("run.debug"))


def storage(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.untyped_storage().tolist())


def numbers(tensor: torch.Tensor) -> np.ndarray:
    small_float = tensor.dtype.is_floating_point and tensor.element_size() < 4
    return (tensor.float() if small_float else tensor).numpy()


def trace_of(*tensors: DebugTensor) -> etdump.ETDump:
    values = [DebugValue(ValueType.TENSOR, tensor=tensor) for tensor in tensors]
    listed = DebugValue(ValueType.TENSOR_LIST, tensors=tensors)
    events = [DebugEvent(value) for value in (*values, listed)]
    return etdump.decode(etdump.encode(dump([run("Execute", events)])))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "transposed"])
def test_tensor_array_gives_the_numbers_of_torch(name: str, layout: str) -> None:
    generator = torch.Generator().manual_seed(3)
    wide = torch.randint(0, 2 if name == "bool" else 100, (2, 3, 4, 5), generator=generator)
    if layout == "channels_last":
        wide = wide.contiguous(memory_format=torch.channels_last)
    tensor = wide.to(getattr(torch, name))
    if layout == "transposed":
        tensor = tensor.permute(3, 1, 0, 2)
    assert layout == "contiguous" or not tensor.is_contiguous()
    data = b"\xee" * 33 + storage(tensor) + b"\xee" * 9  # at no aligned place
    buffer = debug_buffer.decode(data, file="run.debug")
    logged = DebugTensor(BY_NAME[name].code, tuple(tensor.shape), tensor.stride(), 33)
    view = buffer.tensor_array(logged)
    values = view.values()
    assert values is not None
    assert values.shape == tuple(tensor.shape)
    np.testing.assert_array_equal(values, numbers(tensor))
    assert bytes(view.raw) == storage(tensor)


@given(
    st.lists(st.integers(0, 4), max_size=4),
    st.permutations(range(4)),
    st.integers(0, 40),
    st.sampled_from(["int16", "float32", "bfloat16", "uint8"]),
)
@settings(max_examples=150, deadline=None)
def test_tensor_array_of_any_dense_layout_gives_the_numbers_of_torch(
    sizes: list[int], order: list[int], offset: int, name: str
) -> None:
    order = [dim for dim in order if dim < len(sizes)]
    base = torch.arange(int(np.prod([1, *sizes]))).to(getattr(torch, name))
    tensor = base.reshape([sizes[dim] for dim in order]).permute(np.argsort(order).tolist())
    buffer = debug_buffer.decode(b"\xee" * offset + storage(base))
    logged = DebugTensor(BY_NAME[name].code, tuple(tensor.shape), tensor.stride(), offset)
    values = buffer.tensor_array(logged).values()
    assert values is not None
    np.testing.assert_array_equal(values, numbers(tensor))


def test_tensor_without_strides_is_taken_as_row_major() -> None:
    buffer = debug_buffer.decode(np.arange(6, dtype="<i4").tobytes())
    values = buffer.tensor_array(DebugTensor(3, (2, 3), (), 0)).values()
    assert values is not None
    assert values.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("offset", [-1, 0, 10**9])
def test_tensor_without_elements_is_empty_wherever_it_is(offset: int) -> None:
    view = debug_buffer.decode(b"").tensor_array(DebugTensor(6, (2, 0, 3), (0, 3, 1), offset))
    values = view.values()
    assert values is not None
    assert (values.shape, values.dtype, len(view.raw)) == ((2, 0, 3), np.float32, 0)


def test_scalar_tensor_has_no_dimensions() -> None:
    buffer = debug_buffer.decode(b"\0" * 8 + np.float32(2.5).tobytes())
    values = buffer.tensor_array(DebugTensor(6, (), (), 8)).values()
    assert values is not None
    assert values.shape == ()
    assert values == 2.5


def test_packed_type_has_bytes_but_no_numbers() -> None:
    view = debug_buffer.decode(b"abcd").tensor_array(DebugTensor(16, (3,), (1,), 1))
    assert view.values() is None
    assert bytes(view.raw) == b"bcd"


@pytest.mark.parametrize(
    ("tensor", "sentence"),
    [
        (DebugTensor(6, (4,), (1,), 1), "16 bytes from offset 1"),
        (DebugTensor(6, (4,), (1,), 2**62), "inside a buffer of 16 bytes"),
        (DebugTensor(6, (4,), (1,), -1), "from offset -1"),
        (DebugTensor(6, (4,), (1,), -(2**63)), "inside a buffer of 16 bytes"),
        (DebugTensor(6, (2, 2), (1,), 0), "expected 2 strides, found 1"),
        (DebugTensor(6, (-1,), (1,), 0), "no negative sizes"),
        (DebugTensor(6, (2,), (-1,), 0), "no negative sizes and strides"),
        (DebugTensor(6, (2**40,), (0,), 0), "inside a buffer of 16 bytes"),
        (DebugTensor(6, (2**62, 2**62), (2**62, 1), 0), "inside a buffer of 16 bytes"),
        (DebugTensor(6, (2, 2), (10**6, 1), 0), "inside a buffer of 16 bytes"),
        (DebugTensor(99, (1,), (1,), 0), "a dtype of known size"),
    ],
)
def test_tensor_that_does_not_fit_is_refused_by_itself(tensor: DebugTensor, sentence: str) -> None:
    buffer = debug_buffer.decode(bytes(16), file="run.debug")
    with pytest.raises(FormatError, match=sentence) as caught:
        buffer.tensor_array(tensor)
    assert str(caught.value).startswith("run.debug: ")
    assert buffer.tensor_array(DebugTensor(6, (4,), (1,), 0)).values() is not None


def test_buffer_is_kept_byte_for_byte() -> None:
    data = bytes(range(256))
    buffer = debug_buffer.decode(bytearray(data), file="a")
    assert debug_buffer.encode(buffer) == data
    assert debug_buffer.decode(data, file="b") == buffer
    assert buffer.data.readonly


# --- extents ------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", SESSIONS, ids=lambda folder: str(folder.relative_to(DATA)))
def test_extents_of_stock_session_are_those_of_its_tensors(folder: Path) -> None:
    trace = etdump.decode((folder / "run.etdp").read_bytes())
    buffer = debug_buffer.decode((folder / "run.debug").read_bytes())
    expected: list[tuple[int, int]] = []
    for value in trace.events.values:
        for tensor in value.all_tensors():
            view = buffer.tensor_array(tensor)
            if len(view.raw):
                expected.append((tensor.offset, tensor.offset + len(view.raw)))
    starts, ends = buffer.extents(trace)
    assert sorted(zip(starts.tolist(), ends.tolist(), strict=True)) == sorted(expected)
    assert buffer.fits(trace) == max((end for _, end in expected), default=0)
    assert buffer.fits(trace) <= len(buffer.data)


def test_extents_count_strides_and_leave_out_what_has_no_bytes() -> None:
    trace = trace_of(
        DebugTensor(6, (2, 3), (10, 1), 64),
        DebugTensor(6, (0,), (1,), -1),
        DebugTensor(6, (4,), (), 8),
        DebugTensor(99, (4,), (1,), 8),
        DebugTensor(6, (4, 4), (1,), 8),
        DebugTensor(6, (), (), 0),
    )
    starts, ends = debug_buffer.decode(b"").extents(trace)
    found = sorted(zip(starts.tolist(), ends.tolist(), strict=True))
    assert found == [(0, 4)] * 2 + [(8, 24)] * 2 + [(64, 64 + 4 * 13)] * 2
    assert debug_buffer.decode(b"").fits(trace) == 116


def test_extents_of_absurd_tensors_do_not_overflow() -> None:
    trace = trace_of(DebugTensor(7, (2**62, 2**62), (2**62, 1), 2**62))
    assert debug_buffer.decode(b"").fits(trace) >= 2**62


def test_extents_of_trace_without_values_are_empty() -> None:
    assert debug_buffer.decode(b"").fits(dump([])) == 0
    assert debug_buffer.decode(b"").fits(dump([run("Execute", [])])) == 0


@pytest.mark.interop
@pytest.mark.parametrize("name", ["convnet_portable", "tinygpt_xnnpack"])
def test_logged_tensors_are_those_of_the_stock_inspector(
    name: str, corpus: Path, oracle: Oracle
) -> None:
    folder = corpus / "v1.5.1" / name
    paths = {"etdump": folder / "run.etdp", "debug_buffer": folder / "run.debug"}
    facts = oracle.ask("inspector", etrecord=folder / "model.etrecord", **paths)
    stock = [
        entry["sha256"]
        for block in facts["blocks"]
        for event in block["events"]
        for entry in event["debug_data"]
        if isinstance(entry, dict) and entry.get("type") == "tensor"
    ]
    assert len(stock) > 5
    trace = etdump.decode(paths["etdump"].read_bytes())
    buffer = debug_buffer.decode(paths["debug_buffer"].read_bytes())
    ours: set[str] = set()
    for value in trace.events.values:
        for tensor in value.all_tensors():
            values = buffer.tensor_array(tensor).values()
            assert values is not None
            ours.add(hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest())
    assert set(stock) <= ours
