"""XNNPACK payloads: every node kind, value kind and layout, there and back."""

from __future__ import annotations

import struct
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import payloads
from schema.errors import FormatError
from schema.flatbuf.spec import UnknownMember
from schema.payloads.xnnpack import codec
from schema.payloads.xnnpack import model as x
from schema.payloads.xnnpack import nodes as n
from schema.payloads.xnnpack.kernels import FAMILIES, input_ids, output_ids
from schema.payloads.xnnpack.model import DATATYPES
from schema.payloads.xnnpack.nodes import NODE_KINDS
from tests.schema.payload_files import Blob, blob, different_blobs
from tests.schema.payload_xnnpack_samples import sample
from tests.schema.test_payload import assert_graph, assert_parts

pytestmark = pytest.mark.slow

U32 = st.integers(0, 2**32 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)
NUMBERS = st.lists(U32, max_size=6).map(tuple)
F32 = st.floats(width=32, allow_nan=False)
KINDS = [kind for kind, _ in NODE_KINDS]
XNNPACK = [item for item in different_blobs() if item.backend_id == "XnnpackBackend"]


def _field(name: str, annotation: str) -> st.SearchStrategy:
    if annotation == "f32":
        return F32
    if annotation.startswith("tuple"):
        return NUMBERS
    return st.integers(0, 12) if name.endswith("_id") else U32


def node_forms(kind: str) -> st.SearchStrategy[n.NodeForm]:
    form = dict(NODE_KINDS)[kind]
    columns = {f.name: _field(f.name, str(f.type)) for f in fields(form) if f.name != "kind"}
    return st.builds(form, kind=st.just(kind), **columns)


def xnodes(kinds: list[str] = KINDS) -> st.SearchStrategy[x.XNode]:
    bounds = st.none() | st.builds(x.OutputMinMax, F32, F32)
    forms = st.sampled_from(kinds).flatmap(node_forms)
    return st.builds(x.XNode, forms, U32, bounds)


SCALES = st.lists(F32, max_size=5).map(tuple)
QUANTIZED = st.one_of(
    st.builds(x.PerTensorQuant, F32, I32),
    st.builds(x.PerChannelQuant, SCALES, I32, st.integers(0, 3), U32),
    st.builds(x.PerTokenDynamicQuant, I32),
    st.builds(
        x.PerChannelGroupQuant,
        SCALES,
        I32,
        I32,
        st.lists(st.integers(0, 65535), max_size=4).map(tuple),
        st.integers(0, 3),
        U32,
    ),
)
TENSORS = st.builds(
    x.TensorValue,
    st.sampled_from([*DATATYPES, 77]),
    U32,
    NUMBERS,
    st.integers(0, 3),
    st.sampled_from([0, 1, 2, x.NO_VALUE]),
    st.integers(0, 3),
    st.integers(0, 12),
    st.sampled_from([0, 9]),
)
XVALUES = st.builds(x.XValue, TENSORS | st.builds(x.QuantizedTensorValue, TENSORS, QUANTIZED))
ENTRIES = st.one_of(
    st.builds(x.ConstantDataOffset, st.integers(0, 80), st.integers(0, 80), st.none()),
    st.builds(x.ConstantDataOffset, st.just(x.NAMED_OFFSET), U32, st.text(max_size=8)),
)
BUFFERS = st.builds(x.Buffer, st.binary(max_size=40).map(memoryview))
GRAPHS = st.builds(
    x.XNNGraph,
    st.builds(
        x.XnnGraphTable,
        st.none() | st.text(max_size=4),
        st.lists(xnodes(), max_size=8).map(tuple),
        st.lists(XVALUES, max_size=10).map(tuple),
        U32,
        NUMBERS,
        NUMBERS,
        st.none() | st.lists(BUFFERS, max_size=3).map(tuple),
        st.none() | NUMBERS,
        st.none() | st.lists(ENTRIES, max_size=4).map(tuple),
    ),
    st.binary(max_size=64).map(memoryview),
    st.sampled_from(["XN00", "XN01"]),
    st.just(True),
)


@given(GRAPHS)
def test_decode_of_any_encoded_graph_is_that_graph(graph: x.XNNGraph) -> None:
    assert codec.decode(codec.encode(graph)) == graph


@given(GRAPHS)
def test_decode_of_any_encoded_bare_graph_is_that_graph(graph: x.XNNGraph) -> None:
    bare = replace(graph, has_header=False, constants=memoryview(b""))
    assert codec.decode(codec.encode(bare)) == bare


@given(GRAPHS, st.dictionaries(st.text(max_size=8), st.binary(max_size=9).map(memoryview)))
def test_payload_of_any_encoded_graph_is_sound(graph: x.XNNGraph, named: dict) -> None:
    data = codec.encode(graph)
    found = payloads.decode_strict("XnnpackBackend", data, named)
    assert found.graph is not None
    assert_graph(found.graph)
    assert_parts(found, data)
    assert len(found.graph.nodes) == len(graph.table.xnodes) == len(found.operators)


@pytest.mark.parametrize("kind", KINDS)
def test_payload_node_of_each_kind_has_its_operands_and_parameters(kind: str) -> None:
    graph, ins, outs = sample(kind)
    found = payloads.decode_strict("XnnpackBackend", codec.encode(graph))
    assert found.graph is not None
    (node,) = found.graph.nodes
    form = graph.table.xnodes[0].xnode_union
    assert (node.target, node.debug_handle) == (kind, 7)
    assert [value for arg in node.args for value in arg.values] == [
        f"v{ident}" for _, ident in input_ids(form)
    ]
    assert node.outputs == tuple(f"v{ident}" for ident in output_ids(form))
    shapes = [found.graph.values[name].tensor.sizes for name in found.graph.inputs]
    assert shapes == ins
    assert [found.graph.values[name].tensor.sizes for name in found.graph.outputs] == outs
    parameters = {f.name for f in fields(form) if not f.name.endswith("_id")} - {"kind"}
    assert parameters <= set(node.attributes)


def test_every_node_kind_has_kernel_families() -> None:
    assert list(FAMILIES) == KINDS
    assert len(KINDS) == 47


@pytest.mark.parametrize("item", XNNPACK, ids=str)
def test_encode_of_stock_payload_decodes_to_the_same_graph(item: Blob) -> None:
    graph = codec.decode(item.data)
    assert codec.decode(codec.encode(graph)) == graph


@pytest.mark.parametrize("item", XNNPACK, ids=str)
def test_encode_is_stable_after_one_round(item: Blob) -> None:
    once = codec.encode(codec.decode(item.data))
    assert codec.encode(codec.decode(once)) == once


def test_encode_lays_the_container_out_like_stock() -> None:
    graph, _, _ = sample("FullyConnected")
    data = codec.encode(graph)
    zero, magic, length, start, size, area, area_size = struct.unpack_from("<I4sHIIIQ", data)
    assert (zero, magic, length, start) == (0, b"XH00", 30, 32)
    assert data[36:40] == b"XN01"
    assert area == 32 + -(-size // 16) * 16
    assert area + area_size == len(data)
    assert data[area:] == bytes(graph.constants)


def test_payload_convolution_names_operands_and_fused_activation() -> None:
    found = blob("xnnpack").decode()
    assert found.graph is not None
    node = found.graph.nodes[1]
    assert node.name == "Conv2d_1"
    assert [arg.name for arg in node.args] == ["input", "filter", "bias"]
    assert node.attributes["fused_activation"] == "relu"
    assert node.attributes["kernel_height"] == 3
    assert node.debug_handle == 1


def test_payload_inserted_node_has_no_handle_and_says_so() -> None:
    found = blob("xnnpack").decode()
    assert found.graph is not None
    node = found.graph.nodes[0]
    assert node.debug_handle is None
    assert node.attributes["inserted"] is True
    assert found.debug_handles == {
        "Conv2d_1": (1,),
        "StaticReshape_3": (3,),
        "FullyConnected_4": (4,),
        "Sin_5": (5,),
    }


def test_payload_clamp_bounds_are_parameters_not_a_fused_activation() -> None:
    graph, _, _ = sample("Clamp")
    found = payloads.decode_strict("XnnpackBackend", codec.encode(graph))
    assert found.graph is not None
    facts = found.graph.nodes[0].attributes
    assert (facts["output_min"], facts["output_max"]) == (0.0, 0.75)
    assert "fused_activation" not in facts


@pytest.mark.parametrize(
    ("low", "high", "name"),
    [
        (0.0, float("inf"), "relu"),
        (0.0, 6.0, "relu6"),
        (-1.0, 1.0, "clamp(-1, 1)"),
        (float("-inf"), float("inf"), None),
    ],
)
def test_payload_fused_activation_is_named_by_its_bounds(low, high, name) -> None:
    graph, _, _ = sample("Add")
    node = replace(graph.table.xnodes[0], output_min_max=x.OutputMinMax(low, high))
    table = replace(graph.table, xnodes=(node,))
    data = codec.encode(replace(graph, table=table))
    found = payloads.decode_strict("XnnpackBackend", data)
    assert found.graph is not None
    assert found.graph.nodes[0].attributes.get("fused_activation") == name


def test_payload_missing_bias_is_an_argument_without_value() -> None:
    graph, _, _ = sample("FullyConnected")
    form = replace(graph.table.xnodes[0].xnode_union, bias_id=x.NO_VALUE)
    table = replace(graph.table, xnodes=(x.XNode(form, 1),))
    found = payloads.decode_strict("XnnpackBackend", codec.encode(replace(graph, table=table)))
    assert found.graph is not None
    bias = found.graph.nodes[0].args[2]
    assert (bias.name, bias.values, bias.literal) == ("bias", (), None)
    assert found.issues == ()


def test_payload_external_ids_follow_the_delegate_call() -> None:
    item = next(b for b in XNNPACK if b.label == "corpus/v1.5.1/mm_xnnpack:forward:0")
    found = item.decode()
    assert found.graph is not None
    assert found.external_ids == {0: "v0", 1: "v1", 2: "v3", 3: "v4"}
    assert found.graph.inputs == ("v0", "v1", "v3")
    assert found.graph.outputs == ("v4",)


def test_payload_quantized_values_carry_their_parameters() -> None:
    found = blob("xnnpack_q8").decode()
    assert found.graph is not None
    activation = found.graph.values["v1"].tensor
    weight = found.graph.values["v3"].tensor
    assert (activation.dtype, activation.quantization.scheme) == ("qint8", "per_tensor")
    assert activation.quantization.scale == pytest.approx((0.0204757358878850,))
    assert activation.quantization.zero_point == (-13,)
    assert activation.nbytes == 192
    assert (weight.dtype, weight.quantization.scheme) == ("qcint8", "per_channel")
    assert weight.quantization.axis == 0
    roles = {constant.role for constant in found.constants}
    assert roles == {"weight", "scale"}


def test_payload_four_bit_groups_are_read_from_stock_file() -> None:
    items = [b for b in XNNPACK if b.label.startswith("extra/xnnpack_8da4w")]
    tensors = [
        value.tensor
        for item in items
        for value in item.decode().graph.values.values()
        if value.tensor is not None and value.tensor.dtype == "qbint4"
    ]
    assert tensors
    assert {tensor.quantization.scheme for tensor in tensors} == {"per_group"}
    assert {tensor.quantization.group_size for tensor in tensors} == {32}
    assert {tensor.nbytes for tensor in tensors} == {None}


def test_payload_old_group_scales_in_bfloat16_are_numbers() -> None:
    quant = x.PerChannelGroupQuant(group_size=32, scale_bf16=(0x3F80, 0xC000))
    tensor = x.TensorValue(10, 1, (4,), 0, x.NO_VALUE, 0, 0)
    table = x.XnnGraphTable("0", (), (x.XValue(x.QuantizedTensorValue(tensor, quant)),))
    found = payloads.decode_strict("XnnpackBackend", codec.encode(x.XNNGraph(table)))
    assert found.graph is not None
    assert found.graph.values["v0"].tensor.quantization.scale == (1.0, -2.0)


def test_payload_constants_in_the_area_are_parts_and_views() -> None:
    graph, _, _ = sample("FullyConnected")
    data = memoryview(codec.encode(graph))
    found = payloads.decode_strict("XnnpackBackend", data)
    weight, bias = found.constants
    assert (weight.location, weight.nbytes, bias.nbytes) == ("inline", 96, 12)
    assert struct.unpack("<3f", bias.data) == (0.5, 0.5, 0.5)
    parts = {part.name: part for part in found.parts if part.kind == "constant"}
    assert {name: part.nbytes for name, part in parts.items()} == {
        weight.name: 96,
        bias.name: 12,
    }
    assert bytes(data[parts[bias.name].offset :][:12]) == bytes(bias.data)


def test_payload_constants_inside_the_flatbuffer_are_read_without_header() -> None:
    graph, _, _ = sample("PReLU")
    slope = bytes(graph.constants[:32])
    table = replace(
        graph.table,
        constant_buffer=(x.Buffer(), x.Buffer(memoryview(slope))),
        constant_data=None,
    )
    old = x.XNNGraph(table, identifier="XN00", has_header=False)
    data = codec.encode(old)
    found = payloads.decode_strict("XnnpackBackend", data)
    assert found.format == "XN00"
    (constant,) = found.constants
    assert bytes(constant.data) == slope
    (part,) = [part for part in found.parts if part.kind == "constant"]
    assert part.nbytes == 32 + 4  # with its length


def test_payload_legacy_dynamic_type_survives_the_round() -> None:
    tensor = x.TensorValue(1, 1, (4,), 0, 0, 1, 0, dq_datatype=3)
    graph = x.XNNGraph(x.XnnGraphTable("0", (), (x.XValue(tensor),)), identifier="XN00")
    assert codec.decode(codec.encode(graph)).table.xvalues[0].tensor.dq_datatype == 3


def test_payload_node_of_newer_schema_is_named_by_its_tag() -> None:
    table = x.XnnGraphTable("0", (x.XNode(UnknownMember(48), 3),), ())
    found = payloads.decode_strict("XnnpackBackend", codec.encode(x.XNNGraph(table)))
    assert found.graph is not None
    assert found.graph.nodes[0].target == "Unknown(48)"
    assert found.operators[0].names == ()
    assert any("newer schema" in issue.message for issue in found.issues)


def test_payload_dangling_value_id_is_an_issue_not_an_error() -> None:
    table = x.XnnGraphTable("0", (x.XNode(n.Unary("Sigmoid", 4, 5), 1),), ())
    found = payloads.decode_strict("XnnpackBackend", codec.encode(x.XNNGraph(table)))
    assert found.graph is not None
    assert found.graph.values["v4"].kind == "other"
    assert len(found.issues) == 2


def test_payload_dangling_constant_index_is_an_issue_not_an_error() -> None:
    tensor = x.TensorValue(1, 1, (4,), 9, x.NO_VALUE, 0, 0)
    table = x.XnnGraphTable("0", (), (x.XValue(tensor),), constant_data=())
    found = payloads.decode_strict("XnnpackBackend", codec.encode(x.XNNGraph(table)))
    assert found.constants == ()
    assert "constant index below 0" in found.issues[0].message


@pytest.mark.parametrize(
    ("offset", "value", "sentence"),
    [
        (4, b"XH99", "XN01 or XN00"),
        (8, b"\4\0", "a header of 30 bytes or more"),
        (14, b"\xff\xff\xff\x7f", "2147483647 bytes inside a payload"),
        (22, b"\xff" * 8, "inside a payload"),
        (36, b"TOSA", "a flatbuffer XN01 or XN00"),
    ],
)
def test_decode_broken_header_names_what_was_expected(offset, value, sentence) -> None:
    data = bytearray(blob("xnnpack").data)
    data[offset : offset + len(value)] = value
    with pytest.raises(FormatError, match=sentence):
        codec.decode(bytes(data))


def test_decode_bytes_behind_the_constant_area_are_an_issue() -> None:
    found = payloads.decode("XnnpackBackend", blob("xnnpack").data + b"trailing bytes here")
    assert any("19 bytes after" in issue.message for issue in found.issues)
    assert found.parts[-1].kind == "unreferenced"
