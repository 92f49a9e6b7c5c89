"""Delegate payloads through the one door: dispatch, sizes, what every decoder owes."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from schema import payloads
from schema.backends import BACKENDS, resolve
from schema.errors import FormatError
from schema.graph import Graph, NodeKind
from schema.payloads import Payload
from tests.schema.payload_files import DATA, Blob, all_blobs, blob, different_blobs

pytestmark = pytest.mark.slow

KINDS = {
    "header", "node", "value", "constant", "named_reference", "table", "vtable", "block", "file",
    "directory", "section", "text", "binary", "alignment", "unreferenced", "undecoded",
}  # fmt: skip

# the compute nodes of the small model conv + relu + flatten + linear + sin, as each backend has it
MODEL_NODES = {
    "xnnpack": [
        "StaticTranspose", "Conv2d", "StaticTranspose", "StaticReshape", "FullyConnected", "Sin",
    ],
    "xnnpack_q8": [
        "Convert", "StaticTranspose", "Conv2d", "StaticTranspose", "StaticReshape",
        "FullyConnected", "Convert", "Sin",
    ],
    "vulkan": [
        "et_vk.conv_with_clamp.default", "aten.clone.default", "aten.view_copy.default",
        "aten.linear.default", "aten.sin.default",
    ],
    "coreml": ["cast", "conv", "relu", "reshape", "linear", "sin", "cast"],
    "openvino": ["Convolution", "Add", "ReLU", "Reshape", "FullyConnected", "Sin"],
    "tosa_fp": [
        "TRANSPOSE", "CONV2D", "TRANSPOSE", "RESHAPE", "CLAMP", "CONV2D", "RESHAPE", "SIN",
    ],
    "vgf_fp_0.11.0": [
        "TRANSPOSE", "CONV2D", "TRANSPOSE", "RESHAPE", "CLAMP", "CONV2D", "RESHAPE", "SIN",
    ],
    "mps": ["Conv2D", "ReLU", "View", "Permute", "Addmm", "Sin"],
    "native_inline": [
        "aten.convolution.default", "aten.relu.default", "aten.view_copy.default",
        "aten.linear.default", "aten.sin.default",
    ],
    "demo_addmul": ["aten.add.Tensor"],
}  # fmt: skip


@pytest.mark.parametrize("name", MODEL_NODES)
def test_decode_small_model_lists_its_operators_in_order(name: str) -> None:
    graph = blob(name).decode().graph
    assert graph is not None
    assert [node.target for node in graph.calls()] == MODEL_NODES[name]


@pytest.mark.parametrize("name", sorted(MODEL_NODES.keys() - {"demo_addmul"}))
def test_decode_small_model_flows_from_input_to_output(name: str) -> None:
    graph = blob(name).decode().graph
    assert graph is not None
    reached = set(graph.inputs)
    for node in graph.nodes:
        if reached & set(node.inputs):
            reached |= set(node.outputs)
    assert set(graph.outputs) <= reached
    assert len(graph.inputs) == len(graph.outputs) == 1


@pytest.mark.parametrize("name", sorted(MODEL_NODES.keys() - {"demo_addmul"}))
def test_decode_small_model_has_shapes_of_its_interface(name: str) -> None:
    graph = blob(name).decode().graph
    assert graph is not None
    shapes = [graph.values[value].tensor for value in (*graph.inputs, *graph.outputs)]
    assert [tensor.sizes for tensor in shapes if tensor] == [(1, 3, 8, 8), (1, 10)]
    assert [tensor.dtype for tensor in shapes if tensor] == ["float32", "float32"]


@pytest.mark.parametrize("name", sorted(MODEL_NODES.keys() - {"demo_addmul", "openvino"}))
def test_decode_small_model_has_its_weights(name: str) -> None:
    sizes = {constant.nbytes for constant in blob(name).decode().constants}
    narrow = {"coreml": 2, "xnnpack_q8": 4}.get(name, 1)  # half precision; eight bits
    assert {864 // narrow, 20480 // narrow} <= sizes


@pytest.mark.parametrize("item", all_blobs(), ids=str)
def test_decode_every_payload_accounts_for_each_byte_once(item: Blob) -> None:
    assert_parts(item.decode(), item.data)


@pytest.mark.parametrize("item", different_blobs(), ids=str)
def test_decode_every_payload_leaves_no_byte_unread(item: Blob) -> None:
    found = item.decode()
    unread = [part for part in found.parts if part.kind in ("unreferenced", "undecoded")]
    if item.backend_id == "VgfBackend":  # its writer is newer than the public schema
        assert sum(part.nbytes for part in unread) == 16 * len(found.constants)
    else:
        assert unread == []


@pytest.mark.parametrize("item", different_blobs(), ids=str)
def test_decode_every_payload_gives_a_sound_graph(item: Blob) -> None:
    found = item.decode()
    assert found.graph is not None
    assert_graph(found.graph)
    constants = [node.name for node in found.graph.nodes if "CONST" in node.name]
    assert found.node_count > 0 or len(constants) == len(found.graph.nodes) > 0
    assert set(found.external_ids.values()) <= set(found.graph.values)
    assert list(found.external_ids) == list(range(len(found.external_ids)))
    names = [node.name for node in found.graph.nodes]
    assert set(found.debug_handles) <= set(names)


@pytest.mark.parametrize("item", different_blobs(), ids=str)
def test_decode_every_payload_has_all_its_constants_at_hand(item: Blob) -> None:
    for constant in item.decode().constants:
        assert constant.data is not None, constant.name
        assert len(constant.data) >= (constant.nbytes or 0)
        assert constant.location in ("inline", "named")


@pytest.mark.parametrize("item", different_blobs(), ids=str)
def test_decode_views_into_the_payload_without_copying(item: Blob) -> None:
    data = memoryview(item.data)
    found = payloads.decode(item.backend_id, data, item.named, item.specs)
    inline = [
        constant.data
        for constant in found.constants
        if constant.location == "inline" and constant.data is not None
    ]
    assert all(view.obj is data.obj and view.readonly for view in inline)


def assert_parts(found: Payload, data: bytes) -> None:
    at = 0
    for part in found.parts:
        assert part.offset == at
        assert part.nbytes > 0
        assert part.kind in KINDS
        at += part.nbytes
    assert at == found.size == len(data)


def assert_graph(graph: Graph) -> None:
    names = [node.name for node in graph.nodes]
    assert len(set(names)) == len(names)
    for node in graph.nodes:
        assert {*node.inputs, *node.outputs} <= set(graph.values)
        assert node.kind in NodeKind
    assert {*graph.inputs, *graph.outputs} <= set(graph.values)
    for inner in graph.subgraphs.values():
        assert_graph(inner)


@pytest.mark.parametrize("data", [b"", b"\0", b"not a payload", bytes(range(256)) * 8])
@pytest.mark.parametrize("backend_id", [*BACKENDS, "SomebodysBackend", ""])
def test_decode_foreign_bytes_is_a_box_of_the_right_size(backend_id: str, data: bytes) -> None:
    found = payloads.decode(backend_id, data)
    assert_parts(found, data)
    if found.graph is None and found.format == "unreadable":
        assert found.issues


def test_decode_unknown_backend_is_no_error() -> None:
    found = payloads.decode_strict("SomebodysBackend", b"secret bytes")
    assert (found.format, found.graph, found.issues) == ("unknown", None, ())


@pytest.mark.parametrize(
    "name", ["xnnpack", "vulkan", "tosa_fp", "ethosu_q", "vgf_fp_0.11.0", "mps", "native_inline"]
)
def test_decode_renamed_backend_is_told_by_its_mark(name: str) -> None:
    item = blob(name)
    found = payloads.decode("RenamedBackend", item.data, item.named, item.specs)
    assert found.graph == item.decode().graph
    assert found.backend_id == "RenamedBackend"


def test_decode_backend_id_goes_before_the_mark() -> None:
    with pytest.raises(FormatError, match="XN01"):
        payloads.decode_strict("XnnpackBackend", blob("vulkan").data)


def test_decode_missing_named_data_keeps_graph_and_counts_the_missing() -> None:
    item = blob("xnnpack")
    found = payloads.decode(item.backend_id, item.data)
    assert found.graph == item.decode().graph
    assert [constant.data for constant in found.constants] == [None] * 4
    assert [constant.nbytes for constant in found.constants] == [864, 32, 20480, 40]
    assert "4 of 4 named constants" in found.issues[0].message


@pytest.mark.parametrize("place", sorted({one.decoder for one in BACKENDS.values()} - {""}))
def test_decoder_table_names_functions_that_exist(place: str) -> None:
    assert callable(resolve(place))


def test_import_of_payloads_loads_no_decoder() -> None:
    code = "import sys, schema.payloads; print([n for n in sys.modules if 'payloads.' in n])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=DATA.parents[1],
    )
    assert "schema.payloads.xnnpack" not in done.stdout
    assert "schema.payloads.settings.options" not in done.stdout


def test_sha256_of_a_large_view_equals_hashlib() -> None:
    data = bytes(range(251)) * 9000
    assert payloads.sha256(memoryview(data)) == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("data", "bits"),
    [(b"", 0.0), (b"aaaa", 0.0), (b"ab" * 50, 1.0), (bytes(range(256)) * 4, 8.0)],
)
def test_entropy_of_known_distributions_is_exact(data: bytes, bits: float) -> None:
    assert payloads.entropy(memoryview(data)) == pytest.approx(bits)


def test_embedded_texts_finds_runs_and_their_places() -> None:
    data = b"\0\1libQnnHtp.so\0ab\0graph_partition_0\xff"
    assert payloads.embedded_texts(memoryview(data)) == (
        (2, "libQnnHtp.so"),
        (18, "graph_partition_0"),
    )


@pytest.mark.parametrize("at", [(1 << 20) - 3, (1 << 20) - 1, 1 << 20])
def test_embedded_texts_across_a_piece_boundary_is_found_once(at: int) -> None:
    data = bytearray((1 << 20) + 64)
    data[at : at + 12] = b"across_piece"
    assert payloads.embedded_texts(memoryview(data)) == ((at, "across_piece"),)


def test_embedded_texts_ends_at_the_wanted_number() -> None:
    data = memoryview(b"texttext\0" * 5000)
    assert len(payloads.embedded_texts(data, most=10)) == 10
