"""Programs: golden header bytes, laws over the corpus, generated programs, damaged bytes."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema import program
from schema.errors import FormatError
from schema.program import model as m
from schema.program.codec import MAGIC

DATA = Path(__file__).parents[1] / "data"
FILES = sorted((DATA / "corpus").rglob("*.pte"))


def plan(**changes: object) -> m.ExecutionPlan:
    fields: dict[str, object] = {
        "name": "forward",
        "container_meta_type": m.ContainerMetadata("in", "out"),
        "values": (m.EValue(m.Null()),),
        "inputs": (),
        "outputs": (),
        "chains": (m.Chain((), (), (), None),),
        "operators": (),
        "delegates": (),
        "non_const_buffer_sizes": (0, 16),
        "non_const_buffer_device": None,
    }
    return m.ExecutionPlan(**{**fields, **changes})  # pyright: ignore[reportArgumentType]


def made(*plans: m.ExecutionPlan, segments: tuple[bytes, ...] = ()) -> program.ProgramFile:
    table = m.ProgramTable(
        0,
        plans,
        (),
        (),
        tuple(m.DataSegment(0, len(data)) for data in segments),
        m.SubsegmentOffsets(0, (0,)),
        None,
        None,
    )
    return program.ProgramFile(table, None, tuple(memoryview(data) for data in segments))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_corpus_program_decoded_twice_is_equal(path: Path) -> None:
    first = program.decode(path.read_bytes())
    again = program.decode(program.encode(first))
    assert again == first
    assert [bytes(view) for view in again.segments] == [bytes(view) for view in first.segments]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_corpus_program_issues_none(path: Path) -> None:
    assert program.decode(path.read_bytes(), file=str(path)).issues == ()


def test_header_documented_example_is_read_field_by_field() -> None:
    # The worked example of the format documentation: program of 0x2F0 bytes, segments at 0x1000.
    head = bytes.fromhex("38000000 45543132 65683030 20000000")
    head += struct.pack("<QQQ", 0x2F0, 0x1000, 0x20)
    body = bytearray(head + bytes(0x1020 - len(head)))
    # An empty root table at 0x38 with its vtable right before it.
    body[0x34:0x38] = struct.pack("<HH", 4, 4)
    body[0x38:0x3C] = struct.pack("<i", 4)
    read = program.decode(bytes(body))
    assert read.header == m.ExtendedHeader(0x20, 0x2F0, 0x1000, 0x20)


def test_header_of_24_bytes_is_accepted() -> None:
    data = bytearray(FILES[-1].read_bytes())
    assert data[8:12] == MAGIC
    data[12:16] = struct.pack("<I", 24)
    read = program.decode(bytes(data))
    assert read.header is not None
    assert read.header.segment_data_size == 0
    assert read == program.decode(FILES[-1].read_bytes())


def test_program_without_segments_has_no_header() -> None:
    written = program.encode(made(plan()))
    assert written[4:8] == b"ET12"
    assert written[8:12] != MAGIC
    assert program.decode(written).header is None


def test_segments_are_aligned_and_kept_apart() -> None:
    written = program.encode(made(plan(), segments=(b"abc", b"", b"defg")))
    read = program.decode(written)
    assert [bytes(view) for view in read.segments] == [b"abc", b"", b"defg"]
    places = read.table.segments
    assert places is not None
    assert [place.offset for place in places] == [0, 0, 128]
    assert read.header is not None
    assert read.header.segment_base_offset % 128 == 0


VALUES = st.one_of(
    st.just(m.Null()),
    st.builds(m.Int, st.integers(-(2**63), 2**63 - 1)),
    st.builds(m.Bool, st.booleans()),
    st.builds(m.Double, st.floats(allow_nan=False)),
    st.builds(m.String, st.text(max_size=20)),
    st.builds(m.IntList, st.lists(st.integers(0, 9), max_size=4).map(tuple)),
    st.builds(m.DoubleList, st.lists(st.floats(allow_nan=False), max_size=4).map(tuple)),
    st.builds(m.BoolList, st.lists(st.booleans(), max_size=9).map(tuple)),
    st.builds(m.TensorList, st.lists(st.integers(0, 9), max_size=4).map(tuple)),
    st.builds(m.OptionalTensorList, st.lists(st.integers(-1, 9), max_size=4).map(tuple)),
    st.builds(
        m.Tensor,
        st.sampled_from([0, 1, 5, 6, 11, 15, 24, 29]),
        st.just(0),
        st.lists(st.integers(0, 2**31 - 1), max_size=5).map(tuple),
        st.lists(st.integers(0, 15), max_size=5).map(tuple),
        st.booleans(),
        st.integers(0, 2**32 - 1),
        st.none() | st.builds(m.AllocationDetails, *[st.integers(0, 2**32 - 1)] * 3),
        st.integers(0, 1),
        st.integers(0, 2),
        st.none()
        | st.builds(
            m.ExtraTensorInfo,
            st.integers(0, 2**64 - 1),
            st.text(max_size=9),
            st.integers(0, 1),
            st.integers(0, 1),
            st.integers(-1, 3),
        ),
    ),
)
INDEX = st.integers(-1, 40)
ARGS = st.lists(INDEX, max_size=6).map(tuple)
INSTRUCTIONS = st.one_of(
    st.builds(m.KernelCall, INDEX, ARGS),
    st.builds(m.DelegateCall, INDEX, ARGS),
    st.builds(m.MoveCall, INDEX, INDEX),
    st.builds(m.JumpFalseCall, INDEX, INDEX),
    st.builds(m.FreeCall, INDEX),
)
FRAMES = st.builds(m.Frame, st.text(max_size=9), st.integers(0, 99), st.just("f"), st.just("x"))


@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(VALUES, max_size=12),
    steps=st.lists(INSTRUCTIONS, max_size=12),
    traces=st.none() | st.lists(st.lists(FRAMES, max_size=2), max_size=3),
    segments=st.lists(st.binary(max_size=300), max_size=4),
)
def test_generated_program_survives_writing(
    values: list[m.KernelType],
    steps: list[m.InstructionArgs],
    traces: list[list[m.Frame]] | None,
    segments: list[bytes],
) -> None:
    stack = None if traces is None else tuple(m.FrameList(tuple(items)) for items in traces)
    chain = m.Chain((1,), (2,), tuple(m.Instruction(step) for step in steps), stack)
    wanted = made(
        plan(values=tuple(m.EValue(value) for value in values), chains=(chain,)),
        segments=tuple(segments),
    )
    read = program.decode(program.encode(wanted))
    assert read == wanted
    assert program.decode(program.encode(read)) == read


def test_negative_zero_and_nan_keep_their_bits() -> None:
    values = (m.EValue(m.Double(-0.0)), m.EValue(m.DoubleList((-0.0, float("nan"), 0.0))))
    read = program.decode(program.encode(made(plan(values=values))))
    single, many = (entry.val for entry in read.plans[0].values)
    assert isinstance(single, m.Double)
    assert isinstance(many, m.DoubleList)
    assert struct.pack("<d", single.double_val) == struct.pack("<d", -0.0)
    expected = struct.pack("<3d", -0.0, float("nan"), 0.0)
    assert struct.pack("<3d", *many.items) == expected


def test_sniff_ignores_the_name() -> None:
    assert program.sniff(FILES[0].read_bytes()[:64])
    assert not program.sniff(b"PK\x03\x04" + bytes(60))
    assert not program.sniff(b"")


def test_wrong_identifier_error_names_file_place_and_bytes() -> None:
    with pytest.raises(FormatError) as caught:
        program.decode(b"\x10\0\0\0XXXX" + bytes(64), file="some.pte")
    assert str(caught.value).startswith("some.pte: at byte 0x4 in file_identifier")
    assert "ET12" in str(caught.value)
    assert "XXXX" in str(caught.value)


def test_cut_program_error_says_expected_and_actual_size() -> None:
    data = FILES[0].read_bytes()
    with pytest.raises(FormatError, match="cut short"):
        program.decode(data[:200])


def test_cut_segment_is_an_issue_and_the_rest_is_kept() -> None:
    whole = (DATA / "corpus/v1.5.1/tinygpt_portable/model.pte").read_bytes()
    read = program.decode(whole[:-64], file="cut.pte")
    assert [issue.where for issue in read.issues] == ["cut.pte"]
    assert read.plans == program.decode(whole).plans


def test_constant_bytes_of_wrong_index_raise() -> None:
    read = program.decode((DATA / "corpus/v1.5.1/convnet_portable/model.pte").read_bytes())
    tensor = next(
        entry.val
        for entry in read.plans[0].values
        if isinstance(entry.val, m.Tensor) and entry.val.data_buffer_idx > 0
    )
    assert read.constant_data(tensor) is not None
    with pytest.raises(FormatError, match="index below"):
        read.constant_data(dataclasses.replace(tensor, data_buffer_idx=10_000))


def test_self_referencing_offsets_end_quickly() -> None:
    # Every word of the file points back into a window of plausible lengths.
    body = bytearray(struct.pack("<I4s", 16, b"ET12") + bytes(8))
    body += struct.pack("<I", 8) * 50_000
    with pytest.raises(FormatError):
        program.decode(bytes(body))


@pytest.mark.parametrize("seed", range(8))
def test_damaged_program_raises_only_format_errors(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        data = bytearray(rng.choice(FILES).read_bytes())
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        for _ in range(rng.randrange(1, 12)):
            if data:
                data[rng.randrange(min(len(data), 8192))] = rng.randrange(256)
        with contextlib.suppress(FormatError):  # any other exception fails the test
            program.decode(bytes(data))
