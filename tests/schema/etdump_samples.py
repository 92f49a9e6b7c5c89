"""Events and traces for tests of the trace format."""

from __future__ import annotations

from hypothesis import strategies as st

from schema.etdump import (
    AllocationEvent,
    DebugEvent,
    DebugTensor,
    DebugValue,
    ETDump,
    ProfileEvent,
    ValueType,
)
from schema.etdump.build import dump, run

I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
U64 = st.integers(0, 2**64 - 1)
NAMES = st.none() | st.sampled_from(["", "OPERATOR_CALL", "native_call_add.out"]) | st.text()
TENSORS = st.builds(
    DebugTensor,
    st.integers(-128, 127),
    st.lists(I64, max_size=4).map(tuple),
    st.lists(I64, max_size=4).map(tuple),
    I64,
)
VALUES = st.builds(
    DebugValue,
    st.integers(-128, 127),
    st.none() | TENSORS,
    st.none() | st.lists(TENSORS, max_size=3).map(tuple),
    st.none() | I64,
    st.none() | st.floats(width=32),
    st.none() | st.floats(),
    st.none() | st.booleans(),
    st.none() | st.booleans(),
)
PROFILES = st.builds(
    ProfileEvent, NAMES, I32, I32, U64, U64, I32, NAMES, st.none() | st.binary(max_size=20)
)
EVENTS = (
    PROFILES
    | st.builds(AllocationEvent, I32, U64)
    | st.builds(DebugEvent, st.none() | VALUES, I64, I32, NAMES, I32, NAMES)
)
RUNS = st.builds(
    run,
    st.sampled_from(["Default", "Execute", ""]) | st.text(),
    st.lists(EVENTS | st.none(), max_size=8),
    bundled_input_index=I32,
    allocators=st.lists(st.text(max_size=5), max_size=3).map(tuple),
)
DUMPS = st.builds(dump, st.lists(RUNS, max_size=4), size_prefixed=st.booleans(), version=st.just(0))


def every_value() -> list[DebugValue]:
    """One value of each kind that the schema knows, as a runtime would set it."""
    tensor = DebugTensor(6, (2, 3), (3, 1), 64)
    empty = DebugTensor(4, (0,), (1,), -1)
    return [
        DebugValue(ValueType.NULL),
        DebugValue(ValueType.INT, int_value=-5),
        DebugValue(ValueType.BOOL, bool_value=True),
        DebugValue(ValueType.FLOAT, float_value=0.5),
        DebugValue(ValueType.DOUBLE, double_value=1e300),
        DebugValue(ValueType.TENSOR, tensor=tensor, output=True),
        DebugValue(ValueType.TENSOR, tensor=DebugTensor(15, (), (), 0), output=False),
        DebugValue(ValueType.TENSOR_LIST, tensors=(tensor, empty, tensor)),
        DebugValue(ValueType.TENSOR_LIST, tensors=()),
    ]


def small_dump() -> ETDump:
    """A trace with events of every kind in several blocks."""
    load = [ProfileEvent("Program::load_method", -1, 0, 1, 9)]
    execute = [
        DebugEvent(every_value()[5], 0, 0),
        ProfileEvent("native_call_add.out", 0, 0, 20, 30),
        ProfileEvent("OPERATOR_CALL", 0, 0, 19, 31),
        ProfileEvent(None, 0, 1, 40, 50, 3, None, b"meta"),
        ProfileEvent(None, 0, 1, 50, 60, -1, "id #1", b""),
        ProfileEvent("DELEGATE_CALL", 0, 1, 39, 61),
        AllocationEvent(0, 4096),
        *(DebugEvent(value, 0, 2) for value in every_value()),
        ProfileEvent("Method::execute", -1, 0, 10, 70),
    ]
    return dump(
        [
            run("Default", load),
            run("Execute", execute, bundled_input_index=0, allocators=("pool",)),
            run("Execute", execute, bundled_input_index=1, allocators=("pool",)),
        ]
    )
