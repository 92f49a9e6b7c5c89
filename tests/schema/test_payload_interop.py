"""Payloads against the stock wheel: its schema compiler reads ours, its runtime runs ours."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from schema import payloads
from schema.flatbuf.spec import UnknownMember
from schema.payloads import join_by_order
from schema.payloads.native import tables as native_tables
from schema.payloads.reading import PayloadReader
from schema.payloads.settings.options import QNN_OPTIONS, SAMSUNG_OPTIONS, read_options
from schema.payloads.tosa import tables as tosa_tables
from schema.payloads.tosa.ops import DTYPES, OPERATORS
from schema.payloads.vulkan import tables as vulkan_tables
from schema.payloads.xnnpack import codec
from schema.payloads.xnnpack import model as x
from schema.payloads.xnnpack import nodes as n
from schema.payloads.xnnpack.model import DATATYPES
from schema.payloads.xnnpack.nodes import NODE_KINDS
from schema.program import decode, encode
from tests.schema import payload_flatc as flatc
from tests.schema.payload_files import DATA, Blob, blob, different_blobs
from tests.schema.payload_xnnpack_samples import program, sample
from tests.tools.forked import run_stock

pytestmark = pytest.mark.interop
XNNPACK = [item for item in different_blobs() if item.backend_id == "XnnpackBackend"]
NOT_IMPLEMENTED = "ScaledDotProductAttention"
RUNTIME_SCHEMA = "xnnpack/serialization/runtime_schema.fbs"


def _same(ours: Any, stock: Any, where: str) -> None:
    """Compare a decoded table with flatc's JSON of it; flatc prints six decimals."""
    if isinstance(ours, float):
        assert stock == pytest.approx(ours, abs=1e-6, rel=1e-6), where
    elif is_dataclass(ours):
        for field in fields(ours):
            if field.name != "kind":
                item, key = getattr(ours, field.name), field.name
                if item is not None or stock.get(key):
                    _same(item, stock.get(key, _empty(item)), f"{where}.{key}")
    elif isinstance(ours, tuple):
        assert len(ours) == len(stock), where
        for index, (mine, theirs) in enumerate(zip(ours, stock, strict=True)):
            _same(mine, theirs, f"{where}[{index}]")
    elif isinstance(ours, memoryview):
        assert list(ours) == list(stock), where
    else:
        assert ours == stock, where


def _empty(item: Any) -> Any:
    return [] if isinstance(item, tuple | memoryview) else "" if isinstance(item, str) else item


def _graph_json(table: x.XnnGraphTable, stock: dict[str, Any]) -> None:
    enums = flatc.enum_values(flatc.schema_path(RUNTIME_SCHEMA), "XNNDatatype")
    for value in stock["xvalues"]:
        inner = value["xvalue_union"]
        tensor = inner.get("tensor_value", inner)
        for key in ("datatype", "dq_datatype"):
            tensor[key] = enums.get(tensor[key], tensor[key])
    _same(table, stock, "XNNGraph")
    for node, theirs in zip(table.xnodes, stock["xnodes"], strict=True):
        assert theirs["xnode_union_type"] == f"XNN{node.xnode_union.kind}"
    for value, theirs in zip(table.xvalues, stock["xvalues"], strict=True):
        quantized = isinstance(value.xvalue_union, x.QuantizedTensorValue)
        name = "XNNQuantizedTensorValue" if quantized else "XNNTensorValue"
        assert theirs["xvalue_union_type"] == name
        if quantized:
            params = type(value.xvalue_union.quant_params).__name__
            assert theirs["xvalue_union"]["quant_params_type"] == params


def _flatbuffer(data: bytes) -> bytes:
    header = codec.header_of(memoryview(data))
    return data if header is None else data[header[0] : header[0] + header[1]]


@pytest.mark.parametrize("item", XNNPACK, ids=str)
def test_xnnpack_decode_of_stock_payload_equals_flatc(item: Blob, tmp_path: Path) -> None:
    stock = flatc.read(flatc.schema_path(RUNTIME_SCHEMA), _flatbuffer(item.data), tmp_path)
    _graph_json(codec.decode(item.data).table, stock)


@pytest.mark.parametrize("kind", [kind for kind, _ in NODE_KINDS])
def test_xnnpack_encode_of_each_kind_is_read_by_flatc(kind: str, tmp_path: Path) -> None:
    form = dict(NODE_KINDS)[kind]
    values = {
        field.name: _distinct(str(field.type), index)
        for index, field in enumerate(fields(form), start=1)
        if field.name != "kind"
    }
    node = x.XNode(form(kind, **values), 5, x.OutputMinMax(-1.5, 2.5))
    graph = x.XNNGraph(x.XnnGraphTable("0", (node,)), has_header=False)
    schema = flatc.schema_path("xnnpack/serialization/schema.fbs")
    stock = flatc.read(schema, codec.encode(graph), tmp_path)
    _graph_json(graph.table, stock)


def _distinct(annotation: str, index: int) -> Any:
    if annotation == "f32":
        return index + 0.25
    return (index, index + 100) if annotation.startswith("tuple") else index


def test_xnnpack_kinds_and_types_are_those_of_the_stock_schema() -> None:
    schema = flatc.schema_path(RUNTIME_SCHEMA)
    assert [f"XNN{kind}" for kind, _ in NODE_KINDS] == flatc.union_members(schema, "XNodeUnion")
    assert sorted(flatc.enum_values(schema, "XNNDatatype").values()) == sorted(DATATYPES)


@pytest.fixture(scope="module")
def stock_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the stock runtime made of one encoded program a node kind."""
    folder = tmp_path_factory.mktemp("kinds")
    for kind, _ in NODE_KINDS:
        graph, ins, outs = sample(kind)
        types = {len(ins) + 1: 3} if kind == "ArgMaxPooling2d" else None
        (folder / f"{kind}.pte").write_bytes(program(graph, ins, outs, out_types=types))
    for kind in ("Add", "Multiply", "Conv2d", "GlobalAvgPooling2d"):
        graph, ins, outs = sample(kind)
        node = replace(graph.table.xnodes[0], output_min_max=x.OutputMinMax(0.0, 0.25))
        bounded = replace(graph, table=replace(graph.table, xnodes=(node,)))
        (folder / f"{kind}_bounded.pte").write_bytes(program(bounded, ins, outs))
    return outputs_of(folder)


def outputs_of(folder: Path) -> dict[str, Any]:
    return json.loads(run_stock(["-m", "tests.schema.payload_stock", folder]).stdout)


@pytest.mark.parametrize("kind", [kind for kind, _ in NODE_KINDS])
def test_xnnpack_encoded_node_of_each_kind_runs_on_stock(stock_runs, kind: str) -> None:
    answer = stock_runs[kind]
    if kind == NOT_IMPLEMENTED:
        assert "0x11" in answer["error"]
        return
    graph, _, outs = sample(kind)
    operators = payloads.decode("XnnpackBackend", codec.encode(graph)).operators
    assert join_by_order(operators, answer["events"]) == (operators[0].node,)
    assert [len(values) for values in answer["outputs"]] == [_numel(dims) for dims in outs]


def _numel(dims: tuple[int, ...]) -> int:
    count = 1
    for dim in dims:
        count *= dim
    return count


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("Add", 1.0), ("Subtract", 0.0), ("Multiply", 0.25), ("Div", 1.0), ("Maximum", 0.5),
        ("Clamp", 0.5), ("Negate", -0.5), ("Square", 0.25), ("Abs", 0.5), ("Floor", 0.0),
        ("Ceiling", 1.0), ("LeakyReLU", 0.5), ("StaticConstantPad", 2.5), ("Softmax", 0.125),
        ("FullyConnected", 2.5), ("BatchMatrixMultiply", 1.0), ("GlobalAvgPooling2d", 0.5),
        ("Exp", 1.6487212), ("Sin", 0.4794255), ("Cos", 0.8775826), ("Log", -0.6931472),
        ("ReciprocalSquareRoot", 1.4142135), ("SquareRoot", 0.7071068), ("Tanh", 0.4621172),
        ("Sigmoid", 0.6224593), ("PReLU", 0.5), ("AvgPooling2d", 0.5), ("Copy", 0.5),
        ("Conv2d", 4.5), ("DepthwiseConv2d", 1.5),
    ],
)  # fmt: skip
def test_xnnpack_encoded_node_computes_what_its_kind_says(stock_runs, kind, first) -> None:
    assert stock_runs[kind]["outputs"][0][0] == pytest.approx(first, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "events"), [("Add", 2), ("Multiply", 2), ("Conv2d", 1), ("GlobalAvgPooling2d", 2)]
)
def test_xnnpack_bounds_make_the_events_that_are_expected(stock_runs, name, events) -> None:
    answer = stock_runs[f"{name}_bounded"]
    assert len(answer["events"]) == events
    graph, _, _ = sample(name)
    node = replace(graph.table.xnodes[0], output_min_max=x.OutputMinMax(0.0, 0.25))
    data = codec.encode(replace(graph, table=replace(graph.table, xnodes=(node,))))
    operators = payloads.decode("XnnpackBackend", data).operators
    assert join_by_order(operators, answer["events"]) == (f"{name}_0",) * events


def test_xnnpack_reencoded_programs_give_the_same_outputs(tmp_path: Path) -> None:
    names = ["corpus/payloads/xnnpack", "corpus/payloads/m2_xnn", "extra/xnnpack_8da4w/model"]
    names += ["corpus/v1.5.1/convnet_xnnpack/model", "extra/xnnpack_dynamic_quantised/model"]
    for index, name in enumerate(names):
        data = (DATA / f"{name}.pte").read_bytes()
        (tmp_path / f"{index}_stock.pte").write_bytes(data)
        (tmp_path / f"{index}_ours.pte").write_bytes(_reencoded(data))
    answers = outputs_of(tmp_path)
    outputs = [(answers[f"{index}_stock"], answers[f"{index}_ours"]) for index in range(len(names))]
    assert sum("outputs" in stock for stock, _ in outputs) >= 4
    for stock, ours in outputs:
        assert ours == stock


def _reencoded(data: bytes) -> bytes:
    found = decode(data)
    segments = list(found.segments)
    for plan in found.plans:
        for delegate in plan.delegates:
            place = delegate.processed.index
            blob_ = codec.encode(codec.decode(segments[place]))
            segments[place] = memoryview(blob_)
    return encode(replace(found, segments=tuple(segments)))


def test_vulkan_decode_equals_flatc(tmp_path: Path) -> None:
    schema = flatc.schema_path("vulkan/serialization/schema.fbs")
    data = blob("vulkan").data
    stock = flatc.read(schema, data[32:], tmp_path)
    reader = PayloadReader(memoryview(data))
    graph = reader.root(vulkan_tables.GRAPH, 32)
    layouts = flatc.enum_values(schema, "VkMemoryLayout")
    storages = flatc.enum_values(schema, "VkStorageType")
    types = flatc.enum_values(schema, "VkDataType")
    stock["storage_type_override"] = storages[stock["storage_type_override"]]
    stock["memory_layout_override"] = layouts[stock["memory_layout_override"]]
    for value, theirs in zip(graph.values, stock["values"], strict=True):
        assert theirs["value_type"] == type(value.value).__name__
        inner = theirs["value"]
        if isinstance(value.value, vulkan_tables.VkTensor):
            inner["storage_type"] = storages[inner["storage_type"]]
            inner["memory_layout"] = layouts[inner["memory_layout"]]
            for key in ("datatype", "staging_datatype"):
                inner[key] = types[inner[key]]
        if isinstance(value.value, vulkan_tables.Double):
            inner["double_val"] = value.value.double_val  # printed with six decimals
    _same(graph, stock, "VkGraph")
    assert sorted(layouts.values()) == sorted(vulkan_tables.LAYOUT)
    assert sorted(storages.values()) == sorted(vulkan_tables.STORAGE)
    assert sorted(types.values()) == sorted(vulkan_tables.DATATYPES)


def test_vulkan_decodes_every_value_kind_that_flatc_writes(tmp_path: Path) -> None:
    schema = flatc.schema_path("vulkan/serialization/schema.fbs")
    kinds = {
        "Null": {}, "Int": {"int_val": -7}, "Double": {"double_val": 0.5},
        "Bool": {"bool_val": True}, "VkTensor": {"dims": [2, 3], "datatype": "INT64"},
        "IntList": {"items": [1, -2]}, "DoubleList": {"items": [0.25]},
        "BoolList": {"items": [True, False]}, "ValueList": {"items": [0, 1]},
        "String": {"string_val": "mean"}, "SymInt": {"value": 12},
    }  # fmt: skip
    assert list(kinds) == flatc.union_members(schema, "GraphTypes")
    values = [{"value_type": kind, "value": item} for kind, item in kinds.items()]
    calls = [{"node_id": 3, "name": "aten.op.default", "args": list(range(len(kinds)))}]
    content = {"version": "1", "values": values, "chain": calls, "input_ids": [4]}
    found = payloads.decode_strict("VulkanBackend", flatc.write(schema, content, tmp_path))
    assert found.graph is not None
    (node,) = found.graph.nodes
    assert [arg.literal for arg in node.args] == [
        None, -7, 0.5, True, None, (1, -2), (0.25,), (True, False), None, "mean",
    ]  # fmt: skip
    assert node.args[4].values == ("v4",)
    assert node.args[8].values == ("v0", "v1")
    assert node.outputs == ("v10",)
    assert found.graph.values["v10"].kind == "symint"
    assert found.graph.values["v4"].tensor.dtype == "int64"


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_tosa_operators_and_attributes_are_those_of_the_stock_schema(
    version: str, tmp_path: Path
) -> None:
    schema = flatc.schema_path(f"arm/tosa/schemas/tosa_{version}.fbs")
    numbers = flatc.enum_values(schema, "Op")
    attributes = flatc.union_members(schema, "Attribute")
    assert ["UNKNOWN", *OPERATORS][: len(numbers)] == list(numbers)
    assert len(flatc.enum_values(schema, "DType")) <= len(DTYPES)
    operators = [
        {"op": name, "attribute_type": attribute, "attribute": {}, "inputs": ["a"], "outputs": []}
        for name, attribute in zip(list(numbers)[1:], attributes, strict=True)
    ]
    block = {"name": "main", "operators": operators, "inputs": ["a"]}
    content = {"version": {"_major": 1, "_minor": 0}, "regions": [{"blocks": [block]}]}
    found = payloads.decode_strict("TOSABackend", flatc.write(schema, content, tmp_path))
    assert found.graph is not None
    assert [node.target for node in found.graph.nodes] == list(numbers)[1:]
    assert not any("newer" in issue.message for issue in found.issues)


def test_tosa_decode_equals_flatc(tmp_path: Path) -> None:
    schema = flatc.schema_path("arm/tosa/schemas/tosa_1.1.fbs")
    data = blob("tosa_fp").data
    stock = flatc.read(schema, data, tmp_path)
    graph = PayloadReader(memoryview(data)).root(tosa_tables.GRAPH_1)
    (block,) = graph.regions[0].blocks
    theirs = stock["regions"][0]["blocks"][0]
    ops = flatc.enum_values(schema, "Op")
    for mine, other in zip(block.operators, theirs["operators"], strict=True):
        assert mine.op == ops[other["op"]]
        assert list(mine.inputs) == other.get("inputs", [])
        assert list(mine.outputs) == other.get("outputs", [])
        for key, item in mine.attribute.items():
            if not isinstance(item, memoryview) and isinstance(other["attribute"][key], list):
                assert list(item) == other["attribute"][key]
    for mine, other in zip(block.tensors, theirs["tensors"], strict=True):
        assert (mine.name, list(mine.shape)) == (other["name"], other["shape"])
        assert list(mine.data) == other["data"]


def test_native_decode_equals_flatc(tmp_path: Path) -> None:
    schema = flatc.schema_path("native/serialization/native_graph.fbs")
    data = blob("native_inline").data
    stock = flatc.read(schema, data, tmp_path)
    graph = PayloadReader(memoryview(data)).root(native_tables.PROGRAM).methods[0].graph
    theirs = stock["methods"][0]["graph"]
    assert [node.name for node in graph.nodes] == [node["name"] for node in theirs["nodes"]]
    for mine, other in zip(graph.nodes, theirs["nodes"], strict=True):
        assert mine.target == other.get("target", "")
        for argument, item in zip(mine.inputs, other.get("inputs", []), strict=True):
            assert argument.name == item.get("name", "")
            value = argument.arg.value
            assert item["arg"]["value_type"] == type(value).__name__
    assert [value.name for value in graph.tensor_values] == [
        value["name"] for value in theirs["tensor_values"]
    ]


def test_native_decodes_nested_graphs_that_flatc_writes(tmp_path: Path) -> None:
    schema = flatc.schema_path("native/serialization/native_graph.fbs")
    members = flatc.union_members(schema, "ArgumentValue")
    literals = {
        "TensorArg": {"name": "x"}, "NoneArg": {}, "IntArg": {"value": -4},
        "FloatArg": {"value": 0.5}, "BoolArg": {"value": True}, "StringArg": {"value": "sum"},
        "ScalarTypeArg": {"value": "UINT32"}, "IntListArg": {"values": [1, 2]},
        "FloatListArg": {"values": [0.25]}, "BoolListArg": {"values": [True]},
        "TensorListArg": {"names": ["x", "x"]},
        "OptionalTensorListArg": {"names": ["x", ""], "has_value": [True, False]},
        "GraphArg": {"name": "true_graph", "graph": {"nodes": [
            {"name": "inner", "target": "torch.ops.aten.sin.default",
             "outputs": [{"name": "inner"}]},
        ]}},
    }  # fmt: skip
    assert list(literals) == members
    inputs = [
        {"name": f"a{index}", "arg": {"value_type": kind, "value": item}}
        for index, (kind, item) in enumerate(literals.items())
    ]
    node = {"name": "n", "target": "torch.ops.higher_order.cond", "inputs": inputs}
    graph = {"nodes": [node], "inputs": ["x"]}
    content = {"version": "1", "methods": [{"name": "forward", "graph": graph}]}
    found = payloads.decode_strict("NativeBackend", flatc.write(schema, content, tmp_path))
    assert found.graph is not None
    (made,) = found.graph.nodes
    assert made.target == "higher_order.cond"
    assert [arg.literal for arg in made.args[:10]] == [
        None, None, -4, 0.5, True, "sum", "uint32", (1, 2), (0.25,), (True,),
    ]  # fmt: skip
    assert [arg.values for arg in made.args[10:12]] == [("x", "x"), ("x",)]
    (inner,) = found.graph.subgraphs.values()
    assert [item.target for item in inner.nodes] == ["aten.sin.default"]
    assert found.node_count == 2


COREML_READER = """
import importlib.util, sys, types
# The package itself loads torch; only its message types are wanted.
folder = types.ModuleType("coremltools")
folder.__path__ = list(importlib.util.find_spec("coremltools").submodule_search_locations)
sys.modules["coremltools"] = folder
import json
from coremltools.proto import Model_pb2
model = Model_pb2.Model()
model.ParseFromString(open(sys.argv[1], "rb").read())
(block,) = model.mlProgram.functions["main"].block_specializations.values()
print(json.dumps([
    [op.type, [out.name for out in op.outputs],
     {key: [item.name for item in arg.arguments] for key, arg in op.inputs.items()}]
    for op in block.operations
]), file=sys.stdout)
"""


def test_coreml_program_equals_what_coremltools_reads(tmp_path: Path) -> None:
    found = blob("coreml").decode()
    path = tmp_path / "model.mlmodel"
    name = next(name for name in found.files if name.endswith(".mlmodel"))
    path.write_bytes(found.files[name])
    done = run_stock(["-c", COREML_READER, path])
    stock = json.loads(done.stdout.splitlines()[-1])
    assert found.graph is not None
    ours = [
        [node.target, list(node.outputs), {arg.name: list(arg.values) for arg in node.args}]
        for node in found.graph.nodes
    ]
    assert ours == stock


def test_qnn_options_that_flatc_writes_are_spelled_out(tmp_path: Path) -> None:
    schema = flatc.schema_path("qualcomm/serialization/qc_compiler_spec.fbs")
    content = {
        "soc_info": {"soc_model": "SM8750", "htp_info": {"htp_arch": "V79",
                                                          "vtcm_size_in_mb": 8}},
        "backend_options": {"backend_type": "kHtpBackend", "htp_options": {
            "performance_mode": "kHtpBurst", "precision": "kHtpFp16", "use_dlbc": True}},
        "log_level": "kLogLevelWarn", "profile_level": "kProfileDetailed",
        "is_from_context_binary": True, "library_path": "libQnnHtp.so",
        "op_package_options": {"op_package_infos": [{"op_package_name": "mine",
                                                     "target": "HTP"}]},
    }  # fmt: skip
    value = flatc.write(schema, content, tmp_path)
    facts = read_options(QNN_OPTIONS, value)
    expected = {
        "soc_info.soc_model": "SM8750", "soc_info.htp_info.htp_arch": "V79",
        "soc_info.htp_info.vtcm_size_in_mb": 8, "backend_options.backend_type": "HTP",
        "backend_options.htp_options.htp_performance_mode": "burst",
        "backend_options.htp_options.htp_precision": "fp16",
        "backend_options.htp_options.use_dlbc": True, "log_level": "warn",
        "profile_level": "detailed", "is_from_context_binary": True,
        "library_path": "libQnnHtp.so",
        "op_package_options.op_package_infos[0].op_package_name": "mine",
        "op_package_options.op_package_infos[0].target": "HTP",
    }  # fmt: skip
    assert expected.items() <= facts.items()
    described = payloads.describe_compile_specs("QnnBackend", [("qnn_compile_spec", value)])
    assert described == (("qnn_compile_spec", facts),)
    socs = flatc.enum_values(schema, "QcomChipset")
    for name, number in socs.items():
        data = flatc.write(schema, {"soc_info": {"soc_model": name}}, tmp_path)
        found = read_options(QNN_OPTIONS, data)["soc_info.soc_model"]
        assert found == (name if number else "unknown")


def test_samsung_options_that_flatc_writes_are_spelled_out(tmp_path: Path) -> None:
    schema = flatc.schema_path("samsung/serialization/compile_options_def.fbs")
    value = flatc.write(schema, {"chipset": 9955, "perf_mode": "HIGH_PERFORMANCE"}, tmp_path)
    assert value[4:8] == b"EETO"
    facts = {"chipset": 9955, "perf_mode": "high performance"}
    assert read_options(SAMSUNG_OPTIONS, value) == facts
    found = payloads.decode_strict("EnnBackend", b"vendor", {}, [("enn_compile_options", value)])
    assert dict(found.summary) == facts


def test_unknown_members_do_not_reach_the_comparisons() -> None:
    for item in XNNPACK:
        forms = [node.xnode_union for node in codec.decode(item.data).table.xnodes]
        assert all(isinstance(form, n.NodeForm) for form in forms)
        assert not any(isinstance(form, UnknownMember) for form in forms)
