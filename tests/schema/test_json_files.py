"""Flatbuffers as JSON: what flatc prints and reads, there and back, and refusals by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schema import bundled, etdump, flat_tensor
from schema.errors import FormatError
from schema.files.json_files import file_of, from_json, kind_of_json, to_json
from schema.flatbuf.json_text import read_json
from schema.flatbuf.reader import Reader
from schema.program import decode, encode
from schema.program.alignment import alignment_of
from tests.conftest import DATA
from tests.inspector.cli_runs import run, valid
from tests.schema.payload_flatc import stock_folder
from tests.schema.payload_flatc import to_json as printed_by_flatc
from tests.schema.payload_flatc import write as written_by_flatc

KINDS = {".pte": "pte", ".ptd": "ptd", ".bpte": "bpte", ".etdp": "etdump"}
FILES = sorted(
    path
    for folder in ("extra", "corpus/v1.5.1")
    for path in (DATA / folder).rglob("*")
    if path.suffix in KINDS and path.stat().st_size < 200_000
)
SCHEMAS = {
    "pte": "exir/_serialize/program.fbs",
    "ptd": "extension/flat_tensor/serialize/flat_tensor.fbs",
    "bpte": "devtools/bundled_program/serialize/bundled_program_schema.fbs",
    "etdump": "devtools/etdump/etdump_schema_flatcc.fbs",
}


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def root_of(kind: str, flatbuffer: bytes) -> Any:
    """Return the root of a flatbuffer without the header that a file has."""
    data = memoryview(flatbuffer)
    if kind == "pte":
        return decode(data).table
    if kind == "etdump":
        return etdump.decode(data).run_data
    if kind == "ptd":
        return Reader(data).root(flat_tensor.tables.FLAT_TENSOR)
    return Reader(data).root(bundled.BUNDLED_PROGRAM)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_flatbuffer_of_a_file_is_itself_after_json_and_back(path: Path) -> None:
    kind, data = KINDS[path.suffix], path.read_bytes()
    text = to_json(kind, memoryview(data))
    made = from_json(kind, text.encode())
    if kind == "ptd":
        reader, table, base = flat_tensor.root_table(memoryview(data))
        if table is not flat_tensor.tables.FLAT_TENSOR:
            return  # of an older release, which is written as today's
        assert root_of(kind, made) == reader.root(table, base)
    else:
        assert root_of(kind, made) == root_of(kind, data)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_file_of_its_json_and_segments_is_the_file(path: Path) -> None:
    kind, data = KINDS[path.suffix], memoryview(path.read_bytes())
    text = to_json(kind, data).encode()
    assert kind_of_json(text) == kind
    made = file_of(kind, from_json(kind, text), data)
    if kind == "pte":
        program = decode(data)
        assert made == encode(program, alignment=alignment_of(program))
    elif kind == "ptd":
        new, old = flat_tensor.decode(made), flat_tensor.decode(data)
        assert [(entry.key, bytes(entry.data), entry.layout) for entry in new.entries] == [
            (entry.key, bytes(entry.data), entry.layout) for entry in old.entries
        ]
    else:
        assert made == from_json(kind, text)


@pytest.mark.parametrize("suffix", KINDS)
def test_verb_writes_json_and_the_file_again(suffix: str, tmp_path: Path) -> None:
    path = next(path for path in FILES if path.suffix == suffix)
    text, target = tmp_path / "a.json", tmp_path / f"b{suffix}"
    assert run("json", path, "-o", text).code == 0
    assert run("json", path).out == text.read_text("utf-8")
    segments = ("--segments", path) if suffix in (".pte", ".ptd") else ()
    answer = run("json", text, "-o", target, *segments, "--format", "json")
    assert valid(answer, "json")["data"] == {
        "kind": KINDS[suffix],
        "file": str(target),
        "bytes": target.stat().st_size,
    }
    again = tmp_path / "c.json"
    assert run("json", target, "-o", again).code == 0
    assert again.read_text("utf-8") == text.read_text("utf-8")


def test_verb_says_what_is_missing(tmp_path: Path) -> None:
    path = DATA / "extra/external_weights/model.ptd"
    text = tmp_path / "a.json"
    assert run("json", path, "-o", text).code == 0
    for words, told in (
        (("json", text), "-o FILE is missing: it names the file"),
        (("json", text, "-o", tmp_path / "b"), "--segments FILE names the .ptd that has them"),
        (("json", path, "--segments", path), "--segments requires JSON"),
        (("json", text, "-o", text, "--segments", path), "is one of the files being read"),
        (
            ("json", path.with_name("model.etrecord")),
            "expected a flatbuffer file, found an ETRecord",
        ),
    ):
        answer = run(*words)
        assert (answer.code, told in answer.err) == (2, True), answer
    other = run("json", text, "-o", tmp_path / "b", "--segments", path.with_name("model.pte"))
    assert (other.code, "expected a .ptd file for its segments" in other.err) == (3, True)
    text.write_text('{"nodes": []}')
    assert "expected one of the fields execution_plan" in run("json", text, "-o", "x").err


@pytest.mark.interop
@pytest.mark.parametrize("path", FILES[::3], ids=name_of)
def test_flatc_reads_and_prints_the_same_json(path: Path, tmp_path: Path) -> None:
    kind, data = KINDS[path.suffix], path.read_bytes()
    prefixed = ("--size-prefixed",) if kind == "etdump" else ()
    schema = stock_folder() / SCHEMAS[kind]
    if kind == "etdump" and not etdump.decode(data).size_prefixed:
        prefixed = ()
    theirs = read_json(memoryview(printed_by_flatc(schema, data, tmp_path, *prefixed)))
    ours = read_json(memoryview(to_json(kind, memoryview(data)).encode()))
    assert _without_defaults(ours) == _without_defaults(theirs)
    flatbuffer = written_by_flatc(schema, ours, tmp_path)
    assert root_of(kind, flatbuffer) == root_of(kind, from_json(kind, json.dumps(theirs).encode()))


def _without_defaults(tree: Any) -> Any:
    """Return a tree without zeros, first names, empty texts and lists, which flatc leaves out."""
    if isinstance(tree, dict):
        kept = {name: _without_defaults(item) for name, item in tree.items()}
        defaults = (0, -1, False, 0.0, "", [], "BYTE", "STATIC", "CPU", "SEGMENT", "INLINE", "Null")
        return {name: item for name, item in kept.items() if item not in defaults}
    return [_without_defaults(item) for item in tree] if isinstance(tree, list) else tree


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            b'{"execution_plan": [{"nam": "x"}]}',
            "Program.execution_plan.[0].nam: expected a field of",
        ),
        (b'{"version": -1}', "in Program.version: expected a number of type u32, found -1"),
        (b'{"execution_plan": 3}', "in Program.execution_plan: expected a list, found 3"),
        (b"[]", "in Program: expected an object, found []"),
        (
            b'{"execution_plan": [{"values": [{"val_type": "Odd", "val": {}}]}]}',
            "expected a member of KernelTypes, found 'Odd'",
        ),
        (
            b'{execution_plan: [{values: [{val_type: "Tensor", val: {scalar_type: "ODD"}}]}]}',
            "expected one of BYTE, CHAR",
        ),
        (b"{", "expected JSON as flatc prints it"),
    ],
)
def test_json_that_is_no_program_is_refused_by_field(text: bytes, told: str) -> None:
    with pytest.raises(FormatError) as caught:
        from_json("pte", text)
    assert told.replace(".[", "[") in str(caught.value)
