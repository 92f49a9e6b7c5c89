"""Zip archives: what is written can be read, and what is hostile stays contained."""

from __future__ import annotations

import io
import random
import struct
import warnings
import zipfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.errors import FormatError
from schema.etrecord import MARKER, is_record, sniff
from schema.etrecord.archive.container import Archive, open_archive
from schema.etrecord.archive.zip_index import CENTRAL_MAGIC, END_MAGIC, LOCAL_MAGIC
from schema.etrecord.archive.zip_write import Content, write_archive
from schema.etrecord.budget import Budget
from tests.schema.etrecord_samples import RECORDS, archive, record_of

pytestmark = pytest.mark.slow

NAMES = st.text(st.characters(codec="utf-8", categories=("L", "N")), min_size=1, max_size=12)


def opened(data: bytes) -> Archive:
    return open_archive(memoryview(data))


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytearray:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return bytearray(stream.getvalue())


def problems(data: bytes) -> dict[str, str]:
    return {member.name: member.problem for member in opened(data).members if member.problem}


@given(st.dictionaries(NAMES, st.binary(max_size=300), max_size=6))
def test_archive_written_and_read_has_the_same_members(members: dict[str, bytes]) -> None:
    found = opened(archive(members)) if members else None
    for name, content in members.items():
        assert found is not None
        assert bytes(found.read(name)) == content
        assert found.checksum_matches(name)


@given(st.dictionaries(NAMES, st.binary(max_size=300), min_size=1, max_size=6))
def test_archive_written_is_read_by_the_standard_library(members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(io.BytesIO(archive(members))) as theirs:
        assert theirs.testzip() is None
        assert {name: theirs.read(name) for name in theirs.namelist()} == members


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archive_of_the_standard_library_is_read(method: int) -> None:
    content = random.Random(1).randbytes(300_000) + bytes(500_000)
    found = opened(zipped({"a/b": content, "ü": b"", "c": b"x" * 70_000}, method))
    assert found.names == ("a/b", "ü", "c")
    assert bytes(found.read("a/b")) == content
    assert found.issues == ()


def test_stored_member_read_is_a_view_of_the_archive() -> None:
    data = archive({"a": b"hello"})
    view = opened(data).read("a")
    assert view.obj is data
    assert view.readonly


def test_member_with_prefix_before_the_archive_is_read() -> None:
    found = opened(b"#!/bin/sh\n" + zipped({"a": b"hello"}))
    assert bytes(found.read("a")) == b"hello"


def test_member_wider_than_32_bits_is_announced_by_zip64_fields() -> None:
    class Wide(bytes):
        def __len__(self) -> int:
            return 1 << 32

    found = b"".join(write_archive([Content("a", Wide(b"x"))]).partition(b"PK\x01\x02")[:1])
    assert found[18:26] == b"\xff" * 8
    assert struct.unpack_from("<HHQQ", found, 31) == (1, 16, 1 << 32, 1 << 32)


def test_member_sizes_and_place_in_zip64_fields_are_read() -> None:
    data = zipped({"a": b"first", "b": b"second"})
    entry = data.rindex(CENTRAL_MAGIC)
    place = struct.unpack_from("<I", data, entry + 42)[0]
    extra = struct.pack("<HHHHQQQ", 99, 0, 1, 24, 6, 6, place)
    struct.pack_into("<II", data, entry + 20, 0xFFFFFFFF, 0xFFFFFFFF)
    struct.pack_into("<H", data, entry + 30, len(extra))
    struct.pack_into("<I", data, entry + 42, 0xFFFFFFFF)
    data[entry + 47 : entry + 47] = extra
    end = data.index(END_MAGIC)
    struct.pack_into("<I", data, end + 12, struct.unpack_from("<I", data, end + 12)[0] + len(extra))
    assert bytes(opened(bytes(data)).read("b")) == b"second"


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x", "a/../b", "C:/x", "a\\b", "\\\\host\\x", "a\nb", "x\x00y"]
)
def test_member_with_unsafe_name_is_not_read(name: str) -> None:
    stand_in = "N" * len(name)
    data = bytes(zipped({stand_in: b"evil", "good": b"fine"}))
    data = data.replace(stand_in.encode(), name.encode())
    assert "plain relative path" in next(iter(problems(data).values()))
    assert opened(data).names == ("good",)


def test_members_of_one_name_last_one_counts() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the library warns of the duplicate
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as target:
            target.writestr("a", b"first")
            target.writestr("a", b"second")
    found = opened(stream.getvalue())
    assert bytes(found.read("a")) == b"second"
    assert [issue.where for issue in found.issues] == ["a"]


def test_members_overlapping_only_first_is_read() -> None:
    data = zipped({"a": b"A" * 400, "b": b"B" * 40})
    inner = bytes(zipped({"b": b"B" * 40}))
    local = inner[: inner.index(CENTRAL_MAGIC)]
    at = data.index(b"A" * 400) + 10
    data[at : at + len(local)] = local
    entry = data.rindex(CENTRAL_MAGIC)
    struct.pack_into("<I", data, entry + 42, at)
    assert list(problems(bytes(data))) == ["b"]
    assert "overlap" in problems(bytes(data))["b"]


@pytest.mark.parametrize(
    ("shift", "form", "value", "reason"),
    [
        (8, "<H", 1, "encrypted"),
        (10, "<H", 12, "compression method 12"),
        (24, "<I", 5, "stored, but"),
        (42, "<I", 1 << 31, "outside the file"),
        (42, "<I", 3, "no header of this name"),
    ],
)
def test_member_with_bad_directory_entry_leaves_the_other_readable(
    shift: int, form: str, value: int, reason: str
) -> None:
    data = zipped({"bad": b"b" * 50, "good": b"g" * 50})
    struct.pack_into(form, data, data.index(CENTRAL_MAGIC) + shift, value)
    assert reason in problems(bytes(data))["bad"]
    assert bytes(opened(bytes(data)).read("good")) == b"g" * 50


def test_member_that_runs_past_the_end_is_not_read() -> None:
    data = zipped({"bad": b"b" * 50})
    entry = data.index(CENTRAL_MAGIC)
    struct.pack_into("<II", data, entry + 20, 1 << 20, 1 << 20)
    assert "past the end" in problems(bytes(data))["bad"]


def test_deflated_bomb_is_refused_before_it_unpacks() -> None:
    data = bytes(zipped({"bomb": bytes(60 << 20)}, zipfile.ZIP_DEFLATED))
    with pytest.raises(FormatError, match="unpacked bytes"):
        opened(data).read("bomb")


def test_deflated_members_share_one_budget() -> None:
    data = bytes(zipped({f"m{i}": bytes(9 << 20) for i in range(7)}, zipfile.ZIP_DEFLATED))
    found = opened(data)
    assert len(found.sound_names()) == 5
    assert len(found.sound_names()) == 5  # reading again is not charged again


def test_deflated_member_longer_than_announced_is_refused() -> None:
    data = zipped({"a": b"x" * 5000}, zipfile.ZIP_DEFLATED)
    struct.pack_into("<I", data, data.index(CENTRAL_MAGIC) + 24, 10)
    with pytest.raises(FormatError, match="expected 10 bytes"):
        opened(bytes(data)).read("a")


def test_deflated_member_damaged_is_refused() -> None:
    data = zipped({"a": random.Random(0).randbytes(500)}, zipfile.ZIP_DEFLATED)
    at = data.index(CENTRAL_MAGIC) - 100
    data[at] ^= 0xFF
    with pytest.raises(FormatError, match="checksum"):
        opened(bytes(data)).read("a")


def test_deflated_member_of_other_bytes_is_refused() -> None:
    data = zipped({"a": b"x" * 5000}, zipfile.ZIP_DEFLATED)
    at = data.index(b"a", 30) + 1
    data[at : at + 4] = b"\xff" * 4
    with pytest.raises(FormatError, match="deflate data"):
        opened(bytes(data)).read("a")


def test_members_unreadable_are_reported_up_to_a_readable_number() -> None:
    data = bytes(zipped({f"/{index:02}": b"" for index in range(50)} | {"good": b""}))
    issues = opened(data).issues
    assert len(issues) == 21
    assert "30 more members" in issues[-1].message


def test_stored_member_damaged_is_read_and_fails_its_checksum() -> None:
    data = bytearray(archive({"a": b"hello"}))
    data[data.index(b"hello")] ^= 1
    assert not opened(bytes(data)).checksum_matches("a")


def test_archive_without_directory_is_recovered_from_local_headers() -> None:
    data = record_of({"a": b"1" * 100, "b": b"2" * 100})
    cut = data[: data.index(b"2" * 100) + 50]
    found = opened(cut)
    assert found.names == (MARKER, "a")
    assert "recovered" in found.issues[0].message


def test_archive_with_shortened_directory_is_recovered() -> None:
    data = bytearray(record_of({"a": b"1", "b": b"2"}))
    entry = data.rindex(CENTRAL_MAGIC)
    del data[entry : data.index(END_MAGIC)]
    assert opened(bytes(data)).names == (MARKER, "a", "b")


@pytest.mark.parametrize("data", [b"", b"PK", b"hello" * 100, END_MAGIC + bytes(10), bytes(100)])
def test_archive_of_other_bytes_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        opened(data)


def test_archive_with_more_members_than_allowed_is_cut() -> None:
    data = archive({f"{index:x}": b"" for index in range(100_001)})
    assert zipfile.ZipFile(io.BytesIO(data)).namelist()[-1] == "186a0"
    found = opened(data)
    assert len(found.members) == 100_000
    assert "at most 100000 members" in found.issues[0].message


def test_budget_grows_with_the_file() -> None:
    small, large = Budget(0), Budget(1 << 30)
    assert large.inflate_left - small.inflate_left == 1 << 30
    assert large.tree_left > small.tree_left


def test_budget_gives_back_what_only_the_text_of_a_graph_took() -> None:
    budget = Budget(37_060_000)  # both graphs of a model of 10,000 operators and small weights
    left = budget.tree_left
    for cost in (148_146_983, 117_277_246):
        with budget.decoding():
            budget.tree(cost, "graph")
    assert left - budget.tree_left == pytest.approx((148_146_983 + 117_277_246) * 2 / 3, abs=2)


@pytest.mark.parametrize("path", RECORDS[:5], ids=str)
def test_sniff_first_bytes_of_a_record_are_recognised(path: object) -> None:
    data = path.read_bytes()  # pyright: ignore[reportAttributeAccessIssue]
    assert sniff(data[:64])
    assert is_record(data)


def test_sniff_marker_behind_other_members_is_found_by_the_directory() -> None:
    data = archive({"big": bytes(9000), MARKER: b""})
    assert not sniff(data[:4096])
    assert is_record(data)
    assert sniff(archive({"small": b"x", MARKER: b""})[:4096])


@pytest.mark.parametrize(
    "data",
    [
        archive({"archive/data.pkl": b"", "archive/version": b"3"}),  # .pt2, torch.save
        archive({"ETRECORD_V0x": b""}),
        archive({"ETRECORD_V0x": b""})[:-30],
        b"PK\x03\x04" + bytes(26),
        b"x" * 40,
        b"",
    ],
)
def test_sniff_other_files_are_not_records(data: bytes) -> None:
    assert not sniff(data[:4096])
    assert not is_record(data)


def test_local_header_layout_matches_the_standard_library() -> None:
    # Golden: one empty member, written on the first day DOS knows.
    data = write_archive([Content("a", b"")])
    assert (
        data[:31]
        == LOCAL_MAGIC
        + bytes.fromhex(
            "1400 0000 0000 0000 2100 00000000 00000000 00000000 0100 0000".replace(" ", "")
        )
        + b"a"
    )
    assert zlib.crc32(b"") == 0
