"""Core ML models of many kinds: compressed weights, several functions, older networks."""

from __future__ import annotations

import json
import struct
import time
from functools import cache

import pytest

from schema import payloads
from schema.graph import NodeKind
from schema.payloads import Payload
from schema.payloads.coreml.blobs import read_blob
from schema.payloads.coreml.listing import _TOKEN
from schema.payloads.coreml.model import read_model
from schema.payloads.coreml.network import ACTIVATIONS, GATES, KINDS, WEIGHTS
from tests.schema import damage
from tests.schema.payload_files import DATA
from tests.schema.test_payload import assert_graph, assert_parts
from tests.schema.test_payload_coreml import (
    MODEL,
    argument,
    body,
    entry,
    folder,
    model,
    named,
    number,
    operation,
    tensor_type,
)
from tests.tools.forked import run_stock

FOLDER = DATA / "coreml"
NAMES = sorted(path.stem for path in FOLDER.glob("*.bin"))
WEIGHT_FILE = "model.mlpackage/Data/com.apple.CoreML/weights/weight.bin"
PLAIN = ["cast", "linear", "relu", "cast"]
# model -> operations, those of branches, bytes of constants
FACTS = {
    "linear": (PLAIN, [], 544),
    "int8": (["constexpr_affine_dequantize", *PLAIN], [], 336),
    "palette": (["constexpr_lut_to_dense", *PLAIN], [], 192),
    "sparse": (["constexpr_sparse_to_dense", *PLAIN], [], 318),
    "int4": (["constexpr_blockwise_shift_scale", *PLAIN], [], 224),
    "functions": (PLAIN, [], 544),
    "branches": (["cast", "squeeze", "greater", "cond"], ["add", "mul"], 64),
    "state": (["read_state", "cast", "add", "write_state", "read_state", "cast"], [], 0),
    "network": (["innerProduct", "activation"], [], 1088),
}


@cache
def payload(name: str) -> tuple[bytes, Payload]:
    data = (FOLDER / f"{name}.bin").read_bytes()
    return data, payloads.decode_strict("CoreMLBackend", data)


def decode(files: dict[str, bytes], function: str = "") -> Payload:
    data = folder(files)
    if not function:
        found = payloads.decode_strict("CoreMLBackend", data)
        assert_parts(found, data)
    else:
        reference = b"CMJR" + json.dumps({"key": "k", "functionName": function}).encode()
        found = payloads.decode_strict("CoreMLBackend", reference, {"k": memoryview(data)})
    assert found.graph is not None
    assert_graph(found.graph)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_model_of_each_kind_is_read_with_all_its_weights(name: str) -> None:
    data, found = payload(name)
    assert_parts(found, data)
    assert found.graph is not None
    assert_graph(found.graph)
    assert found.issues == ()
    operations, inner, nbytes = FACTS[name]
    assert [node.target for node in found.graph.calls()] == operations
    nested = [node.target for graph in found.graph.subgraphs.values() for node in graph.calls()]
    assert [target for target in nested if target != "cast"] == inner
    assert payloads.total_bytes(found.constants) == nbytes
    assert dict(found.external_ids) == {0: "x", 1: "y"}
    values = [
        value
        for graph in (found.graph, *found.graph.subgraphs.values())
        for value in graph.values.values()
        if value.constant
    ]
    assert {value.constant for value in values} == {item.name for item in found.constants}
    assert all(value.constant_bytes for value in values)


def test_compressed_weight_is_read_by_the_operation_that_unpacks_it() -> None:
    graph = payload("int4")[1].graph
    node = next(node for node in graph.nodes if node.target.startswith("constexpr"))
    inputs = {arg.name: graph.values[arg.values[0]].tensor for arg in node.args}
    assert (inputs["data"].dtype, inputs["data"].sizes) == ("int4", (16, 16))
    assert inputs["scale"].dtype == "float16"


@pytest.mark.parametrize(("function", "scale"), [("decode", 1), ("prefill", 2)])
def test_each_function_has_its_own_weight_of_the_same_name(function: str, scale: int) -> None:
    data, _ = payload("functions")
    reference = b"CMJR" + json.dumps({"key": "k", "functionName": function}).encode()
    found = payloads.decode_strict("CoreMLBackend", reference, {"k": memoryview(data)})
    assert found.graph is not None
    assert found.graph.name == found.summary["shown function"] == function
    files = payload("functions")[1].files
    path, offset = read_model(files[MODEL]).weights[function]["fc_weight_0_to_fp16"]
    assert WEIGHT_FILE.endswith(path.removeprefix("@model_path"))
    weight = read_blob(files[WEIGHT_FILE], offset).data
    plain = payload("linear")[1].constants[0].data
    assert plain is not None
    assert len(weight) == len(plain) == 512
    rows = zip(struct.unpack("<256e", weight), struct.unpack("<256e", plain), strict=True)
    assert all(mine == pytest.approx(scale * first, abs=1e-3) for mine, first in rows)


def test_function_that_is_not_there_is_a_warning() -> None:
    data, _ = payload("linear")
    reference = b'CMJR{"key": "k", "functionName": "other"}'
    found = payloads.decode_strict("CoreMLBackend", reference, {"k": memoryview(data)})
    assert "has no function other; shown is main" in found.issues[0].message


def _stored(field: int, key: str, datatype: int, size: int, offset: int) -> bytes:
    """A value in the weight file, as the attribute or argument of an operation."""
    place = body(1, "@model_path/weights/weight.bin") + number(2, offset)
    value = body(2, tensor_type(datatype, size)) + body(5, place)
    return entry(field, key, value if field == 5 else body(1, body(2, value)))


def _weights(*blobs: bytes) -> bytes:
    data = struct.pack("<II", len(blobs), 2).ljust(64, b"\0")
    for blob in blobs:
        data += struct.pack("<IIQQ", 0xDEADBEEF, 1, len(blob), len(data) + 64).ljust(64, b"\0")
        data += blob + bytes(-len(blob) % 64)
    return data


def _constant(name: str, offset: int) -> bytes:
    return body(3, operation("const", name, {}) + _stored(5, "val", 10, 4, offset))


def test_functions_with_constants_of_one_name_keep_them_apart() -> None:
    blocks = [
        _constant("w", offset) + body(3, operation("relu", "y", {"x": argument("w")}))
        for offset in (64, 192)
    ]
    proto = model(blocks[0], function="one") + model(blocks[1], function="two")[2:]
    found = decode({MODEL: proto, WEIGHT_FILE: _weights(b"one-one!", b"two-two!")})
    assert found.summary["functions"] == "one, two"
    assert [bytes(item.data) for item in found.constants] == [b"one-one!"]
    places = read_model(memoryview(proto)).weights
    assert [places[name]["w"][1] for name in ("one", "two")] == [64, 192]


def test_constants_of_branches_are_constants_of_the_model() -> None:
    inner = _constant("w", 64)
    outer = body(3, operation("cond", "out", {}, inner, _constant("w", 192)))
    files = {MODEL: model(outer), WEIGHT_FILE: _weights(b"12345678", b"abcd")}
    found = decode(files)
    assert [(item.nbytes, bytes(item.data)) for item in found.constants] == [
        (8, b"12345678"), (4, b"abcd"),
    ]  # fmt: skip
    values = [graph.values["w"] for graph in found.graph.subgraphs.values()]
    assert [value.constant_bytes for value in values] == [8, 4]


@pytest.mark.parametrize("field", [2, 5], ids=["argument", "attribute"])
def test_weight_given_straight_to_an_operation_is_a_constant(field: int) -> None:
    node = operation("constexpr_lut_to_dense", "w", {}) + _stored(field, "indices", 35, 16, 64)
    found = decode({MODEL: model(body(3, node)), WEIGHT_FILE: _weights(b"12345678")})
    (made,) = found.graph.nodes
    assert made.inputs == ("w.indices",)
    assert found.graph.values["w.indices"].constant_bytes == 8


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ({}, "weights/weight.bin is not in the folder (the first of 2 missing weights)"),
        ({WEIGHT_FILE: bytes(400)}, "expected the mark 0xdeadbeef"),
        ({WEIGHT_FILE: _weights(b"1234")[:80]}, "expected 64 bytes inside a payload of 80 bytes"),
    ],
)
def test_weights_that_are_lost_are_one_sentence(weights: dict[str, bytes], sentence: str) -> None:
    found = decode({MODEL: model(_constant("a", 64) + _constant("b", 192)), **weights})
    (issue,) = found.issues
    assert sentence in issue.message
    assert all(value.constant_bytes is None for value in found.graph.values.values())


def _layer(name: str, kind: int, content: bytes, inputs: str, outputs: str) -> bytes:
    made = body(1, name) + b"".join(body(2, one) for one in inputs.split())
    return body(1, made + b"".join(body(3, one) for one in outputs.split()) + body(kind, content))


def _network(*layers: bytes, kind: int = 500, description: bytes = b"") -> bytes:
    return number(1, 4) + body(2, description) + body(kind, b"".join(layers))


def test_network_reads_layers_gates_and_branches() -> None:
    gates = body(1, body(1, bytes(16))) + body(4, body(2, bytes(6)))
    inner = _layer("deep", 710, b"", "h", "z")
    found = decode({"model.mlmodel": _network(
        _layer("cell", 420, body(20, gates), "x h0", "h"),
        _layer("act", 130, body(40, b""), "h", "a"),
        _layer("either", 605, body(1, inner) + body(2, b""), "a", ""),
        _layer("", 9999, b"", "a", "y"),
        _layer("act", 665, b"", "a", "b"),
    )})  # fmt: skip
    nodes = found.graph.nodes
    assert [node.target for node in nodes] == [
        "uniDirectionalLSTM", "activation", "branch", "layer 9999", "ceil",
    ]  # fmt: skip
    assert [item.name for item in found.constants] == [
        "cell.inputGateWeightMatrix", "cell.outputGateWeightMatrix",
    ]  # fmt: skip
    assert [item.nbytes for item in found.constants] == [16, 6]
    assert nodes[1].attributes["function"] == "sigmoid"
    assert nodes[2].kind is NodeKind.CONTROL
    assert nodes[2].subgraphs == ("either/then", "either/else")
    assert [node.name for node in nodes[3:]] == ["layer 9999_4", "act#5"]
    assert found.node_count == 6


@pytest.mark.parametrize(
    ("kind", "name"),
    [(202, "pipeline"), (555, "custom model"), (900, "identity"), (901, "model of type 901")],
)
def test_models_of_other_kinds_are_named(kind: int, name: str) -> None:
    files = {"model.mlmodel": number(1, 1) + body(kind, b"\x0a\x02hi"), "metadata.json": b"{}"}
    found = payloads.decode_strict("CoreMLBackend", folder(files))
    assert found.graph is None
    assert found.summary["model"] == name


def test_networks_nested_beyond_the_limit_are_refused() -> None:
    inner = b""
    for _ in range(60):
        inner = _layer("l", 605, body(1, inner), "", "")
    found = payloads.decode("CoreMLBackend", folder({"model.mlmodel": _network(inner)}))
    assert found.graph is None
    assert "networks nested at most" in found.issues[0].message


@pytest.mark.slow
@pytest.mark.parametrize("name", ["int4", "functions", "branches", "network"])
def test_damaged_model_is_refused_or_read_but_never_crashes(name: str) -> None:
    for data in damage.all_kinds(payload(name)[0], 20261121, 40):
        found = payloads.decode("CoreMLBackend", data)
        assert_parts(found, data)
        if found.graph is not None:
            assert_graph(found.graph)


STOCK_READER = """
import importlib.util, sys, types
# The package itself loads torch; only its message types are wanted.
folder = types.ModuleType("coremltools")
folder.__path__ = list(importlib.util.find_spec("coremltools").submodule_search_locations)
sys.modules["coremltools"] = folder
import json
from coremltools.proto import Model_pb2, NeuralNetwork_pb2
from coremltools.proto.NeuralNetwork_pb2 import NeuralNetworkLayer, LSTMWeightParams

def block(item):
    return [[op.type, [out.name for out in op.outputs],
             sorted(key for key in op.inputs), [block(one) for one in op.blocks]]
            for op in item.operations]

def weights(kind):
    names = ("WeightParams", "LSTMWeightParams")
    return {one.number: one.name for one in kind.fields
            if one.message_type is not None and one.message_type.name in names}

found = {}
for path in sys.argv[1:]:
    model = Model_pb2.Model()
    model.ParseFromString(open(path, "rb").read())
    found[path] = {name: block(next(iter(one.block_specializations.values())))
                   for name, one in model.mlProgram.functions.items()}
layers = NeuralNetworkLayer.DESCRIPTOR.oneofs_by_name["layer"].fields
tables = [
    {one.number: one.name for one in layers},
    {one.number: weights(one.message_type) for one in layers if weights(one.message_type)},
    {one.number: one.name for one in LSTMWeightParams.DESCRIPTOR.fields},
    {one.number: one.name for one in NeuralNetwork_pb2.ActivationParams.DESCRIPTOR.fields},
]
print(json.dumps([found, tables]))
"""


@pytest.mark.slow
@pytest.mark.interop
def test_models_and_numbers_are_those_coremltools_reads(tmp_path) -> None:
    programs = [name for name in NAMES if name != "network"]
    for name in programs:
        (tmp_path / name).write_bytes(payload(name)[1].files[MODEL])
    done = run_stock(["-c", STOCK_READER, *programs], cwd=tmp_path)
    found, (kinds, weights, gates, activations) = json.loads(done.stdout.splitlines()[-1])
    assert {str(key): value for key, value in KINDS.items()} == kinds
    assert {str(key): value for key, value in GATES.items()} == gates
    assert {str(key): value for key, value in ACTIVATIONS.items()} == activations
    ours = {
        str(layer): {str(key): value for key, value in row.items()}
        for layer, row in WEIGHTS.items()
    }
    assert ours == weights
    for name in programs:
        graph = payload(name)[1].graph
        _same(graph, graph, found[name][graph.name])


def _same(graph, top, stock) -> None:
    assert [node.target for node in graph.nodes] == [row[0] for row in stock]
    for node, (_, outputs, inputs, blocks) in zip(graph.nodes, stock, strict=True):
        assert list(node.outputs) == outputs
        assert set(inputs) <= {arg.name for arg in node.args}
        assert len(node.subgraphs) == len(blocks)
        for inner, rows in zip(node.subgraphs, blocks, strict=True):
            _same(top.subgraphs[inner], top, rows)


def test_model_description_gives_shapes_and_the_default_function() -> None:
    array = body(5, number(1, 2) + number(1, 3) + number(2, 65568)) + number(1000, 1)
    feature = body(1, body(1, "x") + body(3, array))
    found = decode(
        {"model.mlmodel": _network(_layer("s", 710, b"", "x", "y"), description=feature)}
    )
    assert found.graph.inputs == ("x",)
    assert found.graph.values["x"].tensor.sizes == (2, 3)
    assert found.graph.values["x"].tensor.dtype == "float32"
    block = body(3, operation("relu", "y", {"x": argument("a")}))
    value = named("a", tensor_type(11, 2))
    two = model(block, value, function="one") + model(block, value, function="two")[2:]
    chosen = decode({MODEL: body(2, body(21, "two")) + two})
    assert chosen.graph.name == "two"


LISTING = """program(1.0)
[buildInfo = dict<string, string>({{"coremlc-component-MIL", "3304.5.2"}, {"a", "b"}})]
{
    func prefill<ios18>(tensor<fp32, [1, ?]> x, state<tensor<fp16, [4]>> total) [shape = {"x", [1]}] {
            tensor<fp16, [4]> w = const()[name = string("w"), val = tensor<fp16, [4]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64)))];
            tensor<fp16, [4]> packed = constexpr_lut_to_dense(indices = tensor<uint4, [16]>(BLOBFILE(path = tensor<string, []>("@model_path/weights/weight.bin"), offset = tensor<uint64, []>(192))), shape = tensor<uint32, [1]>([4]))[name = string("packed")];
            tensor<int32, [2]> axes = const()[name = string("axes"), val = tensor<int32, [2]>([-1, 2])];
            fp16 scale = const()[name = string("scale"), val = fp16(0x1.8p-1)];
            tensor<fp16, [2]> a, tensor<fp16, [2]> b = split(axis = axes, x = (x, w), flag = bool(true))[name = string("a")];
            write_state(data = a, input = total)[name = string("store")];
            tensor<fp16, [4]> y = concat(interleave = bool(false), values = (a, b, packed))[name = string("y")];
        } -> (y);
    func decode<ios17>(tensor<fp16, []> x) {
            tensor<fp16, []> y = relu(x = x)[name = string("y")];
        } -> (y, x);
}
"""  # noqa: E501 - lines as the compiler writes them
BLOB = 'tensor<fp16, [1]>(BLOBFILE(path = string("p"), offset = uint64(1)))'
COMPILED = "model.mlmodelc/model.mil"
COMPILED_WEIGHTS = "model.mlmodelc/weights/weight.bin"


def test_compiled_model_is_read_from_its_text() -> None:
    weights = _weights(b"WEIGHTS!", b"12345678")
    found = decode({COMPILED: LISTING.encode(), COMPILED_WEIGHTS: weights})
    assert found.format == "Core ML folder with model.mlmodelc"
    assert found.summary["functions"] == "prefill, decode"
    graph = found.graph
    assert [node.target for node in graph.calls()] == [
        "constexpr_lut_to_dense", "split", "write_state", "concat",
    ]  # fmt: skip
    assert {item.name: bytes(item.data) for item in found.constants} == {
        "w": b"WEIGHTS!", "packed.indices": b"12345678",
    }  # fmt: skip
    values = graph.values
    assert values["w"].constant_bytes == 8
    assert (values["axes"].literal, values["scale"].literal) == ((-1, 2), 0.75)
    assert values["x"].tensor.sizes == (1, "?")
    assert values["total"].tensor.dtype == "float16"
    split = graph.nodes[4]
    assert (split.inputs, split.outputs) == (("axes", "x", "w"), ("a", "b"))
    assert split.args[-1].literal is True
    assert (graph.inputs, graph.outputs) == (("x", "total"), ("y",))
    assert found.issues == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("program(1.0)", "model(1.0)"),
        ("-> (y);", ""),
        ("x = x)", "x = x"),
        ('[name = string("store")]', "{ func }"),
        ("uint64(64)", 'string("64")'),
        (LISTING[200:], ""),
    ],
)
def test_text_that_is_no_program_is_one_sentence(old: str, new: str) -> None:
    text = LISTING.replace(old, new)
    found = payloads.decode("CoreMLBackend", folder({COMPILED: text.encode()}))
    assert found.graph is None
    (issue,) = found.issues
    assert COMPILED in issue.message
    assert COMPILED in found.files


@pytest.mark.slow
def test_text_cut_or_changed_anywhere_is_refused_or_read() -> None:
    for data in damage.all_kinds(LISTING.encode(), 20261121, 60):
        found = payloads.decode("CoreMLBackend", folder({COMPILED: data}))
        if found.graph is not None:
            assert_graph(found.graph)


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [f"tensor<fp16, [1]> w = f(a = {BLOB});", "w(", "tensor<", "x = (", "state<", "a, "],
)
def test_long_text_ends_in_time(row: str) -> None:
    head = "program(1.0) { func main<ios18>() { "  # as many words as are read at all
    row = row * (990_000 // len(_TOKEN.findall(row)))
    data = folder({COMPILED: (head + row).encode()})
    began = time.process_time()
    found = payloads.decode("CoreMLBackend", data)
    assert time.process_time() - began < damage.SECONDS
    assert found.graph is None


def test_compiled_model_keeps_long_literals_their_shapes_and_its_states() -> None:
    numbers = ", ".join(str(one) for one in range(100))
    text = f"""program(1.0) {{
    func main<ios18>(tensor<fp32, [1]> x, state<tensor<fp16, [4]>> total) {{
            tensor<int32, [2, 50]> long = const()[val = tensor<int32, [2, 50]>([[{numbers}]])];
            tensor<int32, [2, 2]> short = const()[val = tensor<int32, [2, 2]>([[1, 2], [3, 4]])];
            tensor<int32, [2, 50]> y = add(x = long, y = tensor<int32, [2, 50]>([[{numbers}]]));
        }} -> (y);
}}"""
    found = decode({"model.mlmodelc/model.mil": text.encode()})
    assert found.graph is not None
    assert found.graph.attributes["states"] == ("total",)
    assert found.graph.values["short"].literal == ((1, 2), (3, 4))
    assert [one.nbytes for one in found.constants] == [400, 400]
    assert bytes(found.constants[0].data)[:12] == struct.pack("<3i", 0, 1, 2)


def test_compiled_model_with_a_literal_of_another_size_is_refused() -> None:
    text = "program(1.0) { func main<ios18>() { tensor<int32, [3]> y = const()[val = tensor<int32, "
    text = f"{text}[3]>([1, 2])]; }} -> (y); }}"
    data = folder({"model.mlmodelc/model.mil": text.encode()})
    found = payloads.decode_strict("CoreMLBackend", data)
    assert found.graph is None
    assert "3 elements of shape [3], found 2" in found.issues[0].message
