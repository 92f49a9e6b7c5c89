"""Payloads of vendors in the layouts of every release: QNN, Neutron, MediaTek, AOTInductor."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema import payloads
from schema.errors import FormatError
from schema.flatbuf.writer import write_root
from schema.payloads import Payload
from schema.payloads.names import unique
from schema.payloads.qnn import tables as q
from tests.schema.test_payload import assert_graph, assert_parts

QNN_MARK, QCIR_MARK = 0x5678ABCD, 0x1234ABCD


def sizes(found: Payload) -> list[tuple[str, int]]:
    return [(part.name, part.nbytes) for part in found.parts]


def qnn(binary: bytes, padded: bool) -> bytes:
    head = struct.pack("<IqQ", QNN_MARK, 7, len(binary))
    return head.ljust(256 if padded else 20, b"\0") + binary


@pytest.mark.parametrize("padded", [True, False], ids=["1.2", "0.6"])
@pytest.mark.parametrize("nbytes", [1, 200, 235, 236, 237, 300])
def test_qnn_context_binary_begins_where_its_release_put_it(padded: bool, nbytes: int) -> None:
    binary = bytes(1 + index % 250 for index in range(nbytes))
    data = qnn(binary, padded)
    found = payloads.decode_strict("QnnBackend", data)
    assert bytes(found.files["context.bin"]) == binary
    assert sizes(found) == [("header", 256 if padded else 20), ("context binary", nbytes)]
    for cut in (1, nbytes // 2):
        if cut:
            with pytest.raises(FormatError, match="binary_size"):
                payloads.decode_strict("QnnBackend", data[:-cut])


def test_qnn_empty_context_binary_is_a_warning() -> None:
    found = payloads.decode_strict("QnnBackend", qnn(b"", padded=True))
    assert [issue.message for issue in found.issues] == ["the context binary is empty"]


def _pair(scale: float, offset: int) -> int:
    return int.from_bytes(struct.pack("<fi", scale, offset), "little")


def _tensor(name: str, kind: int, **more: object) -> q.Tensor:
    return q.Tensor(name, (2, 3), (), kind, 9, **more)


def qcir(*graphs: q.QnnGraphTable, area: bytes = b"") -> bytes:
    flat = write_root(q.CONTEXT, q.Context(graphs), b"")
    return struct.pack("<IIQ", QCIR_MARK, len(flat), len(area)) + flat + area


def _two_nodes() -> q.QnnGraphTable:
    per_tensor = q.QuantizeParam(1, 0, data=(_pair(0.5, -128),))
    per_channel = q.QuantizeParam(1, 1, axis=1, data=(_pair(0.5, 0), _pair(0.25, -1)))
    tensors = (
        _tensor("x", q.WRITE, qparam=per_tensor),
        _tensor("w", q.STATIC, size=8, offset=4, qparam=per_channel),
        _tensor("h", q.NATIVE),
        _tensor("stride", q.STATIC, size=4, offset=0),
        _tensor("y", q.READ),
    )
    nodes = (
        q.Operator("conv", "qti.aisw", "Conv2d", (0, 1), (2,), (3,)),
        q.Operator("conv", "qti.aisw", "Relu", (2,), (4,)),
    )
    return q.QnnGraphTable("forward", nodes, tensors)


def test_qcir_is_a_graph_with_constants_and_scales() -> None:
    data = qcir(_two_nodes(), area=b"abcdWEIGHTS!")
    found = payloads.decode_strict("QnnBackend", data)
    assert found.graph is not None
    assert_graph(found.graph)
    assert_parts(found, data)
    first, second = found.graph.nodes
    assert (first.name, second.name) == ("conv", "conv#1")
    assert (first.target, first.inputs, first.outputs) == ("Conv2d", ("t0", "t1", "t3"), ("t2",))
    assert first.args[2].name == "stride"
    assert (found.graph.inputs, found.graph.outputs) == (("t0",), ("t4",))
    assert {item.name: bytes(item.data) for item in found.constants if item.data is not None} == {
        "t1": b"WEIGHTS!", "t3": b"abcd",
    }  # fmt: skip
    x, w = (found.graph.values[name].tensor for name in ("t0", "t1"))
    assert x is not None
    assert w is not None
    assert x.dtype == "float32"
    assert (x.quantization.scale, x.quantization.zero_point) == ((0.5,), (128,))
    assert (w.quantization.scheme, w.quantization.axis) == ("per_channel", 1)
    assert w.quantization.zero_point == (0, 1)
    assert dict(sizes(found))["t1"] == 8


def test_qcir_of_several_graphs_keeps_each() -> None:
    other = q.QnnGraphTable("prefill", _two_nodes().nodes, _two_nodes().tensors)
    data = qcir(_two_nodes(), other, area=bytes(12))
    found = payloads.decode_strict("QnnBackend", data)
    assert found.graph is not None
    assert_graph(found.graph)
    assert list(found.graph.subgraphs) == ["prefill"]
    assert found.node_count == 4
    assert len({item.name for item in found.constants}) == 4


def test_qcir_without_graphs_is_empty() -> None:
    found = payloads.decode_strict("QnnBackend", qcir())
    assert found.graph is not None
    assert found.node_count == 0


def test_qcir_data_and_indices_that_lead_nowhere_are_issues() -> None:
    table = q.QnnGraphTable("g", (q.Operator("a", "p", "Add", (0, 9), (8,), (7,)),), (
        _tensor("w", q.STATIC, size=100, offset=0),
    ))  # fmt: skip
    data = qcir(table, area=b"short")
    found = payloads.decode_strict("QnnBackend", data)
    assert found.graph is not None
    assert_graph(found.graph)
    assert_parts(found, data)
    assert [issue.message.split()[0] for issue in found.issues] == ["t7", "t8", "t9", "at"]


@pytest.mark.parametrize("place", [4, 8])
def test_qcir_sizes_beyond_the_payload_are_refused(place: int) -> None:
    data = bytearray(qcir(_two_nodes(), area=bytes(12)))
    struct.pack_into("<I", data, place, 1 << 30)
    with pytest.raises(FormatError, match=r"header\."):
        payloads.decode_strict("QnnBackend", bytes(data))


def neutron(header: bytes, version: int, microcode: int, weights: int, kernels: int) -> bytes:
    numbers = [int.from_bytes(b"nMCd", "little"), 0, 0, 0, 0, 0, microcode, weights, 0, 640]
    numbers += [0, 1, 1] if version == 0 else [0x80000010, 32, 0, 1, 1]
    code = struct.pack(f"<{len(numbers)}I", *numbers).ljust(microcode, b"\1")
    blocks = (header, code, b"w" * weights, b"k" * kernels)
    return b"".join(block + bytes(-len(block) % 16) for block in blocks)


NEUTRON = {  # release -> header of one input and one output, of which one is channels last
    "0.7": bytes([1, 1, 1, 0]),
    "1.0": bytes([1, 1, 1, 1, 0, 0, 0]),
    "1.1 version 0": bytes([1, 1, 1, 1, 0, 0, 0, 0]),
    "1.1 version 1": bytes([1, 1, 1, 1, 0, 0, 0, 1]),
    "0.7 wide": bytes([5, 3, 1, 0, 0, 0, 0, 0, 0, 0]),
    "1.0 wide": bytes([4, 2, 4, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 1]) + bytes(1),
    "1.1 wide": bytes([4, 2, 4, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 1, 1]),
}  # fmt: skip


@pytest.mark.parametrize("release", NEUTRON)
def test_neutron_payload_of_each_release_is_divided(release: str) -> None:
    header = NEUTRON[release]
    data = neutron(header, 1 if release.endswith(("version 1", "1.1 wide")) else 0, 70, 33, 20)
    found = payloads.decode_strict("NeutronBackend", data)
    assert_parts(found, data)
    assert found.issues == ()
    assert [(item.name, item.nbytes) for item in found.constants] == [("weights", 33)]
    assert found.summary["inputs"] == header[0]
    assert found.summary["scratch bytes"] == 640
    assert found.summary["microcode bytes"] == 70
    assert bytes(found.files["kernels.bin"]).startswith(b"k" * 20)
    if release.endswith("version 1"):
        assert (found.summary["profile bytes"], found.summary["debug bytes"]) == (16, 32)
    if release == "0.7 wide":  # three arguments would be too few for five inputs
        assert found.format == "Neutron payload without version"
        assert found.summary["tensor formats"].startswith("channels last, formatless")


@pytest.mark.parametrize("lost", [1, 30, 60])
def test_neutron_payload_cut_in_its_blocks_names_the_block(lost: int) -> None:
    data = neutron(NEUTRON["1.1 version 1"], 1, 70, 100, 0)[: -12 - lost]
    found = payloads.decode_strict("NeutronBackend", data)
    assert_parts(found, data)
    assert "the weights would need 100 bytes" in found.issues[0].message


def test_neutron_header_without_microcode_is_a_warning() -> None:
    found = payloads.decode_strict("NeutronBackend", bytes([1, 1, 1, 0, 0, 0, 0, 1]) + bytes(40))
    assert "whose mark is nMCd" in found.issues[0].message


@pytest.mark.parametrize("has_blob", [True, False])
def test_mediatek_shared_weights_are_a_named_constant(has_blob: bool) -> None:
    data = struct.pack("<BIII", 1, 2, 1, 4) + b"dla!"
    specs = [("platform-config", b"mt6989"), ("ExtractSharedBlobKey", b"weights")]
    named = {"weights": memoryview(b"123456")} if has_blob else {}
    found = payloads.decode_strict("NeuropilotBackend", data, named, specs)
    assert [(item.name, item.nbytes) for item in found.constants] == [
        ("weights", 6 if has_blob else None)
    ]
    assert len(found.issues) == (not has_blob)
    assert_parts(found, data)


ELF = b"\x7fELF\x02\x01" + bytes(12) + b"\xb7\0" + bytes(44)
MACH_O = b"\xcf\xfa\xed\xfe\x0c\0\0\1" + bytes(56)


@pytest.mark.parametrize("backend", ["CudaBackend", "MetalBackend"])
@pytest.mark.parametrize(
    ("specs", "keys"),
    [
        ([("method_name", b"decode")], ["decode_so_blob", "decode_weights_blob"]),
        ([("other", b"x"), ("method_name", b"a/b")], ["a/b_so_blob", "a/b_weights_blob"]),
        ([], ["so_blob", "weights_blob"]),
    ],
)
def test_aoti_empty_payload_takes_its_keys_from_the_method(backend, specs, keys) -> None:
    named = {keys[0]: memoryview(ELF), keys[1]: memoryview(b"12345")}
    found = payloads.decode_strict(backend, b"", named, specs)
    assert [(item.name, item.role, item.nbytes) for item in found.constants] == [
        (keys[0], "library", 64), (keys[1], "weight", 5),
    ]  # fmt: skip
    assert (found.size, found.parts, found.issues) == (0, (), ())
    assert all("/" not in name for name in found.files)
    assert "2 of 2 named" in payloads.decode_strict(backend, b"", {}, specs).issues[0].message


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (ELF, "ELF for AArch64"),
        (ELF[:18] + b"\x3e\0", "ELF for x86-64"),
        (ELF[:18] + b"\x99\0", "ELF for machine 153"),
        (MACH_O, "Mach-O for AArch64"),
        (b"MZ" + bytes(60), "Windows library"),
        (b"\x7fELF", "of unknown kind"),
        (b"", "of unknown kind"),
    ],
)
def test_aoti_library_says_for_what_it_is(head: bytes, kind: str) -> None:
    found = payloads.decode_strict("CudaBackend", b"k_so_blob", {"k_so_blob": memoryview(head)})
    assert found.summary["library"] == kind


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "a#1", "a#2", "a#1#2", "b", ""]), max_size=12))
def test_names_made_unique_are_unique_and_keep_their_text(names: list[str]) -> None:
    taken: set[str] = set()
    made = [unique(name, index, taken) for index, name in enumerate(names)]
    assert len(set(made)) == len(made)
    assert all(new.startswith(old) for new, old in zip(made, names, strict=True))


@pytest.mark.parametrize(
    "data",
    [qnn(b"b" * 40, padded=True), qnn(b"b" * 40, padded=False),
     qcir(_two_nodes(), area=bytes(12)),
     *(neutron(head, 1, 70, 33, 20) for head in NEUTRON.values())],
    ids=["qnn 1.2", "qnn 0.6", "qcir", *NEUTRON],
)  # fmt: skip
@pytest.mark.parametrize("backend", ["QnnBackend", "NeutronBackend"])
def test_cut_and_flipped_payloads_are_boxes_with_one_sentence(backend: str, data: bytes) -> None:
    damaged = [data[:size] for size in range(0, len(data), 7)]
    damaged += [data[:at] + b"\xff\xff\xff\x7f" + data[at + 4 :] for at in range(0, 64, 4)]
    for changed in damaged:
        found = payloads.decode(backend, changed)
        assert_parts(found, changed)
        if found.graph is not None:
            assert_graph(found.graph)
        if found.format == "unreadable":
            assert len(found.issues) == 1
            assert "\n" not in found.issues[0].message
