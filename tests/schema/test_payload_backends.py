"""Payloads of the other backends: hand-made files for what the corpus does not have."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import payloads
from schema.errors import FormatError
from schema.flatbuf.writer import write_root
from schema.graph import NodeKind
from schema.payloads.ethosu.commands import OPERATIONS, read_commands
from schema.payloads.mps import tables as mps
from schema.payloads.openvino.payload import _KEY, plain_text
from schema.payloads.tosa.release_0 import RELEASE_0
from schema.payloads.vgf import tables as vgf
from schema.payloads.vgf.spirv import instructions, read_graph
from schema.payloads.vulkan import tables as vulkan
from tests.schema.payload_files import DATA, blob
from tests.schema.test_payload import assert_graph, assert_parts


def openvino(xml: str, constants: bytes = b"", custom: bytes = b"<c/>") -> bytes:
    raw = xml.encode()
    hidden = bytes(byte ^ _KEY[index % len(_KEY)] for index, byte in enumerate(raw))
    places = (48, len(custom), 48 + len(custom), len(constants))
    model = 48 + len(custom) + len(constants)
    return struct.pack("<6Q", *places, model, len(raw)) + custom + constants + hidden


def layer(ident: int, kind: str, name: str, data: str = "", ins: int = 0, outs: int = 1) -> str:
    dims = "<dim>2</dim><dim>3</dim>"
    ports = [f'<port id="{port}" precision="FP32">{dims}</port>' for port in range(ins + outs)]
    inner = f"<data {data}/>" if data else ""
    inner += f"<input>{''.join(ports[:ins])}</input>" if ins else ""
    inner += f"<output>{''.join(ports[ins:])}</output>" if outs else ""
    return f'<layer id="{ident}" name="{name}" type="{kind}" version="opset1">{inner}</layer>'


def test_openvino_corpus_names_the_fx_node_of_each_layer() -> None:
    graph = blob("openvino").decode().graph
    assert graph is not None
    assert [node.attributes["fx_node"] for node in graph.calls()] == [
        "aten_convolution_default", "aten_convolution_default", "aten_relu_default",
        "aten_view_copy_default", "aten_addmm_default", "aten_sin_default",
    ]  # fmt: skip


def test_openvino_corpus_offers_the_model_as_files() -> None:
    found = blob("openvino").decode()
    assert bytes(found.files["model.xml"]).startswith(b'<?xml version="1.0"?>\n<net name="Model0"')
    assert len(found.files["model.bin"]) == 21424
    assert found.summary["device"] == "CPU"


@given(st.binary(max_size=100))
def test_openvino_plain_text_undoes_the_key(raw: bytes) -> None:
    hidden = bytes(byte ^ _KEY[index % len(_KEY)] for index, byte in enumerate(raw))
    if not hidden.startswith(b"<"):
        assert plain_text(memoryview(hidden)) == raw


def test_openvino_nested_bodies_are_subgraphs() -> None:
    inner = f"<layers>{layer(0, 'Parameter', 'p')}{layer(1, 'Sin', 's', ins=1)}</layers>"
    edges = '<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges>'
    loop = layer(1, "Loop", "loop", ins=1).replace(
        "</layer>", f"<body>{inner}{edges}</body></layer>"
    )
    xml = f"<net><layers>{layer(0, 'Parameter', 'x')}{loop}{layer(2, 'Result', 'r', ins=1, outs=0)}"
    xml += '</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
    xml += '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>'
    found = payloads.decode_strict("OpenvinoBackend", openvino(xml))
    assert found.graph is not None
    assert_graph(found.graph)
    assert [node.kind for node in found.graph.nodes] == [
        NodeKind.PLACEHOLDER, NodeKind.CONTROL, NodeKind.OUTPUT,
    ]  # fmt: skip
    body = found.graph.subgraphs["loop/body"]
    assert [node.target for node in body.nodes] == ["Parameter", "Sin"]
    assert body.nodes[1].inputs == ("p",)
    assert found.graph.nodes[2].inputs == ("loop",)


def test_openvino_dangling_edges_are_counted() -> None:
    edges = '<edges><edge from-layer="9" from-port="0" to-layer="0" to-port="0"/></edges>'
    xml = f"<net><layers>{layer(0, 'Sin', 's', ins=1)}</layers>{edges}</net>"
    found = payloads.decode_strict("OpenvinoBackend", openvino(xml))
    assert "1 edges begin" in found.issues[0].message


@pytest.mark.parametrize("place", ['offset="90" size="9"', 'offset="x" size="1"', 'size="1"'])
def test_openvino_constant_outside_its_area_is_an_issue(place: str) -> None:
    xml = f"<net><layers>{layer(0, 'Const', 'w', place)}</layers></net>"
    data = openvino(xml, b"12345678")
    found = payloads.decode_strict("OpenvinoBackend", data)
    assert found.constants == ()
    assert len(found.issues) == 1
    assert_parts(found, data)


def test_ethosu_corpus_reads_blocks_commands_and_interface() -> None:
    found = blob("ethosu_q").decode()
    assert found.graph is not None
    kinds = [node.target for node in found.graph.nodes]
    assert kinds.count("CONV") == 2
    assert kinds.count("DMA_START") == 2
    assert set(kinds) == {"CONV", "POOL", "DMA_START"}
    conv = next(node for node in found.graph.nodes if node.target == "CONV")
    assert conv.attributes["ifm_shape"] == (8, 8, 3)
    assert conv.attributes["ofm_shape"] == (8, 8, 8)
    assert conv.attributes["kernel"] == (3, 3)
    assert found.summary["scratch bytes"] == 1104
    assert found.summary["command words"] == 325
    assert found.graph.values["input_0"].tensor.sizes == (1, 1, 1, 3, 8, 8)


def block(name: str, data: bytes, external: int = 0) -> bytes:
    head = struct.pack("<16sIB11s", name.encode(), len(data), external, b"")
    return head + data + bytes(-len(data) % 16)


def interface(*tensors: tuple[int, ...]) -> bytes:
    return struct.pack("<i", len(tensors)) + b"".join(
        struct.pack(f"<{len(t)}i", *t) for t in tensors
    )


def commands(*words: int) -> bytes:
    head = [int.from_bytes(b"COP1", "little"), 0x00100001, 7, 9, 5, 2 | len(words) << 16]
    return struct.pack(f"<{len(head) + len(words)}I", *head, *words)


def stream(*blocks: bytes) -> bytes:
    return block("vela_bin_stream", b"") + b"".join(blocks) + block("vela_end_stream", b"")


def test_ethosu_external_block_is_found_by_its_key() -> None:
    key = "0123456789abcdef" * 4
    data = stream(block("weight_data", key.encode(), 1), block("cmd_data", commands(0x2)))
    found = payloads.decode_strict("EthosUBackend", data, {key: memoryview(b"weights")})
    assert [(item.name, item.location, item.nbytes) for item in found.constants] == [
        (key, "named", 7)
    ]
    assert found.summary["external blocks"] == "weight_data"
    assert_parts(found, data)
    missing = payloads.decode_strict("EthosUBackend", data)
    assert missing.constants[0].data is None
    assert missing.issues


def test_ethosu_stream_of_release_0_6_has_four_dimensions_and_scratch_bytes() -> None:
    data = stream(
        block("scratch_data", bytes(96)),
        block("inputs", interface((1, 2, 3, 4, 1, 0, 1), (1, 5, 0, 0, 2, 24, 1))),
    )
    found = payloads.decode_strict("ArmBackend", data)
    assert found.graph is not None
    assert found.graph.values["input_0"].tensor.sizes == (1, 2, 3, 4)
    assert found.graph.values["input_1"].tensor.nbytes == 0
    assert found.summary["scratch bytes"] == 96


@given(st.lists(st.sampled_from([*OPERATIONS, 0x010A, 0x4000, 0x000, 0x011]), max_size=30))
def test_ethosu_commands_finds_exactly_the_operations_written(codes: list[int]) -> None:
    words: list[int] = []
    for code in codes:
        words += [code, 0x12345678] if code & 0x4000 else [code | 3 << 16]
    found = read_commands(memoryview(commands(*words)))
    expected = [OPERATIONS[code] for code in codes if code in OPERATIONS]
    assert [operation.kind for operation in found.operations] == expected
    assert found.words == len(words)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (block("cmd_data", b""), "a first block vela_bin_stream"),
        (b"vela_bin_stream\0\xff\xff\xff\xff", "block 0"),
        (stream(block("weight_data", b"short", 1)), "a key of 64 digits"),
        (stream(block("inputs", struct.pack("<i", 3) + bytes(40))), "entries of 7 or 9 integers"),
    ],
)
def test_ethosu_damaged_stream_is_refused_with_a_reason(data: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        payloads.decode_strict("EthosUBackend", data)


def test_vgf_corpus_reads_modules_resources_and_constants() -> None:
    found = blob("vgf_fp_0.11.0").decode()
    assert found.graph is not None
    assert found.summary["inputs"] == "input_0"
    assert found.graph.attributes["entry_point"] == "graph_partition_0"
    conv = found.graph.nodes[1]
    assert conv.attributes["pad"] == (1, 1, 1, 1)
    assert conv.attributes["acc_type"] == "float32"
    assert found.graph.values[conv.inputs[1]].constant == "constant_0"
    assert [item.nbytes for item in found.constants] == [864, 20480]
    assert bytes(found.files["module_0.spv"][:4]) == bytes.fromhex("03022307")


def test_vgf_several_segments_are_nodes_with_their_modules_inside() -> None:
    module = vgf.Module(1, "m", "main", vgf.SpirV((0x07230203, 0, 0, 0, 0)))
    shader = vgf.Module(0, "s", "main", vgf.Glsl("void main() {}"))
    slot = vgf.BindingSlot
    segments = (
        vgf.Segment(1, "first", 0, inputs=(slot(0, 0),), outputs=(slot(0, 1),)),
        vgf.Segment(0, "second", 1, inputs=(slot(0, 1),), outputs=(slot(0, 2),)),
    )
    sequence = vgf.Sequence(segments, (slot(0, 0),), (slot(0, 2),), ("x",), ("y",))
    entries = tuple(vgf.Resource(0, 100, 0, vgf.Description((1, -1), ()), None) for _ in range(3))
    sections = [
        write_root(vgf.MODULES, vgf.ModuleTable((module, shader))),
        write_root(vgf.SEQUENCE, sequence),
        write_root(vgf.RESOURCES, vgf.ResourceTable(entries)),
        b"CONST00\0" + bytes(8),
    ]
    data, places = b"", []
    for section in sections:
        places += [128 + len(data), len(section)]
        data += section + bytes(-len(section) % 8)
    header = struct.pack("<4sHH4BI8Q", b"VGF1", 1, 0, 0, 4, 3, 0, 0, *places)
    data = header.ljust(128, b"\0") + data
    found = payloads.decode_strict("VgfBackend", data)
    assert found.graph is not None
    assert_graph(found.graph)
    assert_parts(found, data)
    assert [node.target for node in found.graph.nodes] == ["graph", "compute"]
    assert found.graph.values["resource_0"].tensor.sizes == (1, "?")
    assert found.graph.inputs == ("resource_0",)
    assert set(found.files) == {"model.vgf", "module_0.spv", "module_1.glsl"}


def test_vgf_spirv_instruction_that_does_not_fit_is_refused() -> None:
    words = (0x07230203, 0, 0, 0, 0, 3 << 16 | 5, 1)
    with pytest.raises(FormatError, match="an instruction inside the module"):
        list(instructions(words))
    with pytest.raises(FormatError, match="SPIR-V mark"):
        read_graph((1, 2, 3, 4, 5), ())


@dataclass
class Addition:
    """An MPS operation as an object with its fields, which the writer asks for."""

    input1_id: int
    input2_id: int
    output_id: int
    alpha: float = 1.0
    kind: str = "Add"


def mps_payload(graph: mps.MPSGraph, data: bytes, has_header: bool) -> bytes:
    flat = write_root(mps.GRAPH if has_header else mps.OLD_GRAPH, graph, b"MP00")
    if not has_header:
        return flat
    start = 24 + len(flat) + -(24 + len(flat)) % 16
    header = struct.pack("<I4sQQ", 0, b"MP00", start, len(data))
    return (header + flat).ljust(start, b"\0") + data


@pytest.mark.parametrize("has_header", [True, False])
def test_mps_constants_are_read_from_segment_and_from_buffers(has_header: bool) -> None:
    data = bytes(range(16))
    buffer = mps.Buffer() if has_header else mps.Buffer(memoryview(data))
    plain = mps.Tensor(2, 1, (4,))
    weight = mps.Tensor(2, 1, (4,), 16, buffer, 0)
    nodes = (mps.Node(Addition(0, 1, 2)),)
    graph = mps.MPSGraph("0", nodes, (plain, weight, plain), (0,), (2,), (1,))
    payload = mps_payload(graph, data, has_header)
    found = payloads.decode_strict("MPSBackend", payload)
    assert found.graph is not None
    (constant,) = found.constants
    assert bytes(constant.data) == data
    assert found.graph.nodes[0].inputs == ("v0", "v1")
    assert found.graph.values["v1"].constant == constant.name
    assert_parts(found, payload)
    (part,) = [part for part in found.parts if part.kind == "constant"]
    assert part.nbytes == 16 + 4 * (not has_header)


def test_vulkan_payload_of_release_0_2_is_read_without_node_ids() -> None:
    call = vulkan.OperatorCall(0, "aten.add.Tensor", (0, 1, 2))
    tensor = vulkan.VkValue(vulkan.VkTensor(1, (4,), -1, -1))
    graph = vulkan.VkGraph("0", (call,), (tensor,) * 3, (0, 1), (2,))
    for table in (vulkan.GRAPH, vulkan.GRAPH_V02):
        found = payloads.decode_strict("VulkanBackend", write_root(table, graph, b"VK00"))
        assert found.graph is not None
        (node,) = found.graph.nodes
        assert (node.target, node.inputs, node.outputs) == (call.name, ("v0", "v1"), ("v2",))


def test_vulkan_constants_and_shaders_lie_in_the_byte_area() -> None:
    tensor = vulkan.VkTensor(5, (2,), 0, -1)
    graph = vulkan.VkGraph(
        "0", (), (vulkan.VkValue(tensor),), (), (), (vulkan.VkBytes(0, 8),), (vulkan.VkBytes(8, 4),)
    )
    flat = write_root(vulkan.GRAPH, graph, b"VK00")
    start = 32 + len(flat) + -len(flat) % 16
    header = struct.pack("<I4sHIIIQ", 0, b"VH00", 30, 32, len(flat), start, 12)
    data = (header.ljust(32, b"\0") + flat).ljust(start, b"\0") + b"weights!spir"
    found = payloads.decode_strict("VulkanBackend", data)
    assert [(item.role, bytes(item.data)) for item in found.constants] == [
        ("weight", b"weights!"), ("shader", b"spir"),
    ]  # fmt: skip
    assert found.graph.values["v0"].constant_bytes == 8
    assert_parts(found, data)


def test_tosa_release_0_80_has_its_own_numbers() -> None:
    assert RELEASE_0.operator(6) == "FULLY_CONNECTED"
    assert RELEASE_0.operator(71) == "ERF"
    assert RELEASE_0.operator(99) == "op 99"
    assert RELEASE_0.dtype(8) == ("float32", 6)
    assert len(RELEASE_0.attributes) == 24


def test_demo_text_lists_operations_with_handles() -> None:
    text = (
        "2version:0#op:demo::aten.mm.default, numel:4, dtype:torch.float32<debug_handle>7#"
        "op:demo::aten.sin.default, numel:4, dtype:torch.float32<debug_handle>-1#"
    )
    found = payloads.decode_strict("BackendWithCompilerDemo", text.encode())
    assert found.graph is not None
    first, second = found.graph.nodes
    assert (first.target, first.debug_handle) == ("aten.mm.default", 7)
    assert (second.target, second.debug_handle) == ("aten.sin.default", None)
    assert first.attributes == {"numel": "4", "dtype": "torch.float32"}
    assert found.debug_handles == {"aten.mm.default_0": (7,)}
    assert_parts(found, text.encode())


def test_demo_program_payload_offers_the_program() -> None:
    program = (DATA / "corpus/payloads/xnnpack.pte").read_bytes()
    found = payloads.decode_strict("ExecutorBackend", program)
    assert found.summary["methods"] == "forward"
    assert bytes(found.files["program.pte"]) == program


def test_aoti_keys_find_library_and_weights() -> None:
    data = b"abc_so_blob\nabc_weights_blob"
    named = {"abc_so_blob": memoryview(b"\x7fELF"), "abc_weights_blob": memoryview(b"1234567")}
    for backend in ("CudaBackend", "MetalBackend"):
        found = payloads.decode_strict(backend, data, named)
        assert [(item.role, item.nbytes) for item in found.constants] == [
            ("library", 4), ("weight", 7),
        ]  # fmt: skip
        assert set(found.files) == set(named)
        assert_parts(found, data)
    missing = payloads.decode_strict("CudaBackend", data)
    assert [item.nbytes for item in missing.constants] == [None, None]


def test_qnn_header_and_binary_are_told_apart() -> None:
    data = struct.pack("<IqQ", 0x5678ABCD, -2, 10).ljust(256, b"\0") + b"0123456789"
    found = payloads.decode_strict("QnnBackend", data)
    assert bytes(found.files["context.bin"]) == b"0123456789"
    assert [(part.name, part.nbytes) for part in found.parts] == [
        ("header", 256), ("context binary", 10),
    ]  # fmt: skip
    with pytest.raises(FormatError, match="binary_size"):
        payloads.decode_strict("QnnBackend", data[:-1])
    bare = payloads.decode_strict("QnnBackend", b"context")
    assert bare.format == "QNN context binary without header"


def test_mediatek_header_announces_the_model() -> None:
    data = struct.pack("<BIII", 1, 2, 3, 4) + b"dla!"
    found = payloads.decode_strict("NeuropilotBackend", data)
    assert dict(found.summary) == {
        "header version": 1, "inputs": 2, "outputs": 3, "model bytes": 4,
    }  # fmt: skip
    assert found.issues == ()
    assert payloads.decode_strict("NeuropilotBackend", data + b"more").issues
    with pytest.raises(FormatError, match="header version 1"):
        payloads.decode_strict("NeuropilotBackend", b"\2" + data[1:])


def test_neutron_header_gives_formats_and_maps() -> None:
    header = bytes([2, 1, 2, 1, 0, 0, 0, 1, 0, 3])
    data = header.ljust(16, b"\0") + b"microcode" + bytes(7)
    found = payloads.decode_strict("NeutronBackend", data)
    assert found.summary["payload version"] == 3
    assert found.summary["tensor formats"] == "channels last, formatless, formatless"
    assert found.summary["input map"] == (0, 1)
    assert found.summary["output map"] == (0,)
    assert_parts(found, data)
    with pytest.raises(FormatError, match="formats 0 or 1"):
        payloads.decode_strict("NeutronBackend", bytes([1, 0, 1, 9, 0, 1]))


@pytest.mark.parametrize(
    ("backend", "key", "value", "meaning"),
    [
        ("VulkanBackend", "storage_type_override", b"\1\0\0\0", "texture_3d"),
        ("VulkanBackend", "memory_layout_override", b"\2\0\0\0", "channels_packed"),
        ("VulkanBackend", "storage_type_override", b"\x63\0\0\0", 99),
        ("VulkanBackend", "texture_limits_x", b"\0\x40\0\0", 16384),
        ("VulkanBackend", "force_fp16", b"\1", True),
        ("VulkanBackend", "force_fp16", b"\7", "0x07"),
        ("VulkanBackend", "external_constants_max_data_bytes", b"\0\0\0\0\1\0\0\0", 2**32),
        ("VulkanBackend", "unheard_of", b"\1\2", "0x0102"),
        ("CoreMLBackend", "pass_pipeline", b'["a", "b"]', ["a", "b"]),
        ("CoreMLBackend", "pass_pipeline", b'["a", ', '["a", '),
        ("CoreMLBackend", "min_deployment_target", b"7", 7),
        ("CoreMLBackend", "compute_units", b"all", "all"),
        ("EthosUBackend", "preserve_io_quantization", b"True", True),
        ("VgfBackend", "tosa_spec", b"TOSA-1.0+FP", "TOSA-1.0+FP"),
        ("MPSBackend", "use_fp16", b"\0", False),
        ("NeuropilotBackend", "platform-config", b"mt6991", "mt6991"),
        ("QnnBackend", "qnn_compile_spec", b"\xff\xfe", "0xfffe"),
        ("SomebodysBackend", "k", b"", ""),
        ("SomebodysBackend", "k", b"\xff" * 80, "0x" + "ff" * 64 + "…"),
    ],
)  # fmt: skip
def test_describe_compile_specs_gives_typed_values(backend, key, value, meaning) -> None:
    assert payloads.describe_compile_specs(backend, [(key, value)]) == ((key, meaning),)


@given(st.text(max_size=12), st.text(max_size=12), st.binary(max_size=200))
def test_describe_compile_specs_never_raises(backend: str, key: str, value: bytes) -> None:
    specs = [(key, value), ("pass_pipeline", value), ("storage_type_override", value)]
    for name in (backend, "CoreMLBackend", "VulkanBackend", "QnnBackend", "EnnBackend"):
        assert len(payloads.describe_compile_specs(name, specs)) == 3
