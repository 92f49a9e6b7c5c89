"""Core ML payloads: folder, program, weights, handles, references."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import payloads
from schema.errors import FormatError
from schema.graph import NodeKind
from schema.payloads.coreml.tree import is_safe, read_tree
from schema.payloads.coreml.wire import FieldBudget, fields, packed, signed, varint
from tests.schema.payload_files import blob
from tests.schema.test_payload import assert_graph, assert_parts

PACKAGE = "model.mlpackage"
MODEL = f"{PACKAGE}/Data/com.apple.CoreML/model.mlmodel"


# A writer of the wire format and of the folder, for tests only.
def number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def body(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def entry(field: int, key: str, value: bytes) -> bytes:
    return body(field, body(1, key) + body(2, value))


def tensor_type(datatype: int, *dims: int | None) -> bytes:
    sizes = b"".join(
        body(3, body(1, number(1, dim)) if dim is not None else body(2, b"")) for dim in dims
    )
    return body(1, number(1, datatype) + number(2, len(dims)) + sizes)


def named(name: str, kind: bytes) -> bytes:
    return body(1, name) + body(2, kind)


def argument(*names: str) -> bytes:
    return b"".join(body(1, body(1, name)) for name in names)


def operation(kind: str, output: str, inputs: dict[str, bytes], *blocks: bytes) -> bytes:
    made = body(1, kind) + b"".join(entry(2, key, item) for key, item in inputs.items())
    made += body(3, named(output, tensor_type(11, 2, 3)))
    return made + b"".join(body(4, block) for block in blocks)


def model(block: bytes, *inputs: bytes, function: str = "main", opset: str = "CoreML7") -> bytes:
    made = b"".join(body(1, item) for item in inputs) + body(2, opset) + entry(3, opset, block)
    return number(1, 8) + body(502, number(1, 1) + entry(2, function, made))


def folder(files: dict[str, bytes]) -> bytes:
    nodes: list[dict] = []
    area = b""

    def add(tree: dict, name: str) -> int:
        nonlocal area
        children = {
            key: add(item, key) if isinstance(item, dict) else add_file(key, item)
            for key, item in tree.items()
        }
        region = {"offset": 0, "size": 0}
        nodes.append({"name": name, "kind": 1, "dataRegion": region, "children": children})
        return len(nodes) - 1

    def add_file(name: str, data: bytes) -> int:
        nonlocal area
        region = {"offset": len(area), "size": len(data)}
        nodes.append({"name": name, "kind": 0, "dataRegion": region, "children": {}})
        area += data
        return len(nodes) - 1

    tree: dict = {}
    for path, data in files.items():
        *parents, last = path.split("/")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = data
    add(tree, "root")
    return area + json.dumps({"nodes": nodes}).encode()[::-1]


def decode(data: bytes, named_data: dict | None = None):
    return payloads.decode_strict("CoreMLBackend", data, named_data or {})


def test_corpus_payload_has_the_files_of_a_model_package() -> None:
    found = blob("coreml").decode()
    assert set(found.files) == {
        "metadata.json", "debug_info.json", f"{PACKAGE}/Manifest.json", MODEL,
        f"{PACKAGE}/Data/com.apple.CoreML/weights/weight.bin",
        f"{PACKAGE}/executorch_debug_handle_mapping.json",
    }  # fmt: skip
    assert json.loads(bytes(found.files["metadata.json"]))["inputNames"] == ["x"]


def test_corpus_payload_takes_handles_from_the_debug_symbols() -> None:
    found = blob("coreml").decode()
    assert found.graph is not None
    handles = {node.target: node.debug_handle for node in found.graph.calls()}
    assert handles == {"cast": 5, "conv": 1, "relu": 2, "reshape": 3, "linear": 4, "sin": 5}
    assert found.debug_handles["linear_0_cast_fp16:linear"] == (4,)


def test_corpus_payload_reads_types_literals_and_weights() -> None:
    found = blob("coreml").decode()
    assert found.graph is not None
    values = found.graph.values
    assert values["aten_conv2d_default_pad_0"].literal == (1, 1, 1, 1)
    assert values["aten_conv2d_default_pad_type_0"].literal == "custom"
    assert values["x_to_fp16"].tensor.dtype == "float16"
    weight = next(item for item in found.constants if item.name == "p_conv_weight_to_fp16")
    first = struct.unpack("<e", bytes(weight.data[:2]))[0]
    assert first == pytest.approx(-0.00143886, abs=1e-4)
    bias = values["p_conv_bias_to_fp16"]
    assert len(bias.literal) == 8
    assert found.summary["specification version"] == 6


@given(st.dictionaries(st.sampled_from(["a", "b/c", "b/d/e", "f.json"]), st.binary(max_size=30)))
def test_read_tree_returns_every_file_written(files: dict[str, bytes]) -> None:
    data = folder(files)
    issues: list = []
    tree = read_tree(memoryview(data), issues)
    assert {file.path: bytes(file.data) for file in tree.files} == files
    assert issues == []
    assert_parts(payloads.decode("CoreMLBackend", data), data)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "C:", "nul\0", "../../etc"])
def test_is_safe_refuses_names_that_leave_the_folder(name: str) -> None:
    assert not is_safe(name)


def test_read_tree_file_outside_the_folder_is_left_out() -> None:
    data = folder({"good": b"1", "evil": b"2"}).replace(b"evil"[::-1], b"../x"[::-1])
    found = payloads.decode("CoreMLBackend", data)
    assert "good" in found.files
    assert len(found.files) == 1
    assert any("not that of a file" in issue.message for issue in found.issues)


def test_read_tree_cycle_ends_with_an_issue() -> None:
    nodes = [
        {"name": "a", "kind": 1, "dataRegion": {"offset": 0, "size": 0}, "children": {"b": 1}},
        {"name": "b", "kind": 1, "dataRegion": {"offset": 0, "size": 0}, "children": {"a": 0}},
    ]
    found = payloads.decode("CoreMLBackend", json.dumps({"nodes": nodes}).encode()[::-1])
    assert found.files == {}
    assert any("cannot be followed" in issue.message for issue in found.issues)


def test_read_tree_region_behind_the_end_is_refused() -> None:
    data = folder({"file": b"123"}).replace(b'"size": 3'[::-1], b'"size": 9999'[::-1])
    with pytest.raises(FormatError, match="inside a payload"):
        decode(data)


def test_program_control_flow_is_a_subgraph_of_its_node() -> None:
    inner = body(2, "y") + body(3, operation("relu", "y", {"x": argument("a")}))
    outer = body(3, operation("cond", "out", {"pred": argument("p")}, inner, inner))
    proto = model(
        body(2, "out") + outer, named("a", tensor_type(11, 2, None)), named("p", tensor_type(1))
    )
    found = decode(folder({MODEL: proto}))
    assert found.graph is not None
    assert_graph(found.graph)
    (node,) = found.graph.nodes
    assert (node.kind, node.target) == (NodeKind.CONTROL, "cond")
    assert node.subgraphs == ("out/0", "out/1")
    assert [item.target for item in found.graph.subgraphs["out/1"].nodes] == ["relu"]
    assert found.graph.subgraphs["out/0"].values["a"].tensor.sizes == (2, "?")
    assert found.node_count == 3
    assert found.graph.inputs == ("a", "p")


def test_reference_finds_model_and_function_in_named_data() -> None:
    block = body(2, "y") + body(3, operation("relu", "y", {"x": argument("a")}))
    one = model(block, named("a", tensor_type(11, 2)), function="one")
    other = body(2, "z") + body(3, operation("sin", "z", {"x": argument("a")}))
    two = model(other, named("a", tensor_type(11, 2)), function="two")[2:]  # merged messages
    methods = {"one": {"inputNames": ["a"], "outputNames": ["y"]},
               "two": {"inputNames": ["a"], "outputNames": ["z"]}}  # fmt: skip
    metadata = json.dumps({"identifier": "id", "methods": methods}).encode()
    blob_ = memoryview(folder({MODEL: one + two, "metadata.json": metadata}))
    reference = {"version": 1, "key": "coreml_id", "functionName": "two"}
    data = b"CMJR" + json.dumps(reference).encode()
    found = decode(data, {"coreml_id": blob_})
    assert found.graph is not None
    assert [node.target for node in found.graph.nodes] == ["sin"]
    assert found.external_ids == {0: "a", 1: "z"}
    assert [(item.name, item.role) for item in found.constants] == [("coreml_id", "model")]
    assert MODEL in found.files
    assert_parts(found, data)
    missing = decode(data)
    assert missing.graph is None
    assert "is not in the named data" in missing.issues[0].message


def test_compiled_model_is_a_folder_without_graph() -> None:
    found = decode(folder({"model.mlmodelc/coremldata.bin": b"123", "metadata.json": b"{}"}))
    assert found.graph is None
    assert found.format == "Core ML folder with model.mlmodelc"
    assert "model.mlmodelc/coremldata.bin" in found.files


def test_broken_program_keeps_the_files() -> None:
    found = decode(folder({MODEL: b"\xff\xff\xff", "metadata.json": b"[]"}))
    assert found.graph is None
    assert MODEL in found.files
    assert len(found.issues) == 2


@given(st.lists(st.tuples(st.integers(1, 600), st.integers(0, 2**64 - 1)), max_size=8))
def test_fields_of_written_numbers_are_those_numbers(rows: list[tuple[int, int]]) -> None:
    message = b"".join(number(field, value) for field, value in rows)
    assert list(fields(memoryview(message), FieldBudget())) == rows


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=8))
def test_packed_signed_numbers_survive(numbers: list[int]) -> None:
    raw = b"".join(_varint(value) for value in numbers)
    assert packed(memoryview(raw), "v") == numbers
    assert [signed(value & (2**64 - 1)) for value in numbers] == numbers


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 10, b"\xff" * 12])
def test_varint_without_end_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="ten bytes"):
        varint(memoryview(data), 0)


@pytest.mark.parametrize("data", [b"\x0a\x05ab", b"\x0d\0\0", b"\x09\0", b"\x0b", b"\x0f"])
def test_fields_of_cut_or_foreign_message_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        list(fields(memoryview(data), FieldBudget()))


def test_debug_handles_out_of_range_are_dropped_with_an_issue() -> None:
    info = {"debugSymbolToHandles": {"y:relu": [-1, 7, 1 << 40], "z:sin": [3], "w:x": "no"}}
    block = body(3, operation("relu", "y", {"x": argument("a")})) + body(2, "y")
    data = folder({
        MODEL: model(block, named("a", tensor_type(11, 2))),
        "debug_info.json": json.dumps(info).encode(),
    })  # fmt: skip
    found = decode(data)
    assert found.graph is not None
    assert found.graph.nodes[0].debug_handle == 7
    assert dict(found.debug_handles) == {"y:relu": (7,)}  # the others are no nodes
    assert "y:relu are out of range and were dropped (the first of 2)" in found.issues[0].message
