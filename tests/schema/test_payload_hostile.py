"""Damaged and hostile payloads: a reason instead of a crash, in bounded time and memory."""

from __future__ import annotations

import struct
import sys
import time

import pytest

from schema import payloads
from schema.backends import BACKENDS
from schema.errors import FormatError
from schema.payloads.coreml.wire import FieldBudget, fields
from schema.payloads.vgf.spirv import read_graph
from tests.schema import damage
from tests.schema.payload_files import Blob, all_blobs, different_blobs
from tests.schema.test_payload import assert_graph, assert_parts
from tests.schema.test_payload_backends import openvino, stream
from tests.schema.test_payload_coreml import MODEL, body, entry, folder, model, operation

pytestmark = pytest.mark.slow

if sys.platform == "linux":
    import resource

# One of each format, and of XNNPACK one of each layout. Named, since decoding all while tests are
# collected took 2.5 s in each test process.
FORMATS = {
    "Core ML folder with model.mlpackage": "corpus/payloads/coreml",
    "MP00": "backends/mps_unary",
    "NPTG": "backends/native_unary",
    "OpenVINO CPU stream": "corpus/payloads/openvino",
    "TOSA": "backends/tosa_unary_int8",
    "VGF1 0.5.0": "corpus/payloads/vgf_fp_0.11.0",
    "VH00/VK00": "backends/vulkan_unary",
    "XH00/XN01": "old/program_inline_xh00",
    "XN00": "old/program_no_header_delegates",
    "demo text": "corpus/payloads/demo_addmul",
    "vela_bin_stream/COP1": "corpus/payloads/ethosu_q",
}
SEED, COUNT = 20260801, 60


def blob_of(form: str) -> Blob:
    """Return the last payload of the program that has this format."""
    return next(
        item for item in reversed(all_blobs()) if item.label.startswith(f"{FORMATS[form]}:")
    )


def test_every_format_is_damaged() -> None:
    assert {item.decode().format for item in different_blobs()} == set(FORMATS)
    assert {form: blob_of(form).decode().format for form in FORMATS} == {f: f for f in FORMATS}


@pytest.mark.parametrize("form", FORMATS)
def test_damaged_payload_is_refused_or_read_but_never_crashes(form: str) -> None:
    item = blob_of(form)
    for data in damage.all_kinds(item.data, SEED, COUNT):
        found = item.decode(data)
        assert_parts(found, data)
        if found.graph is not None:
            assert_graph(found.graph)
        elif found.format == "unreadable":
            assert "\n" not in found.issues[0].message


@pytest.mark.parametrize("form", FORMATS)
def test_damaged_payload_under_another_id_is_treated_alike(form: str) -> None:
    item = blob_of(form)
    for data in damage.wild_words(item.data, SEED + 1, 20):
        assert_parts(payloads.decode("RenamedBackend", data, item.named), data)


def bounded(backend: str, data: bytes) -> payloads.Payload:
    """Decode within the time and memory that a file of this size may take."""
    before = _peak_memory()
    began = time.process_time()  # the machine may be busy with other tests
    found = payloads.decode(backend, data)
    assert time.process_time() - began < damage.SECONDS
    assert _peak_memory() - before < 4 * len(data) + 200e6
    assert_parts(found, data)
    return found


def _peak_memory() -> int:
    """Return the most bytes this process ever had, 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _many_tables(identifier: bytes, slot: int, count: int) -> bytes:
    """A root table whose vector in a slot refers to ``count`` small tables."""
    root_slots = slot + 1
    vtable = struct.pack("<HH", 4 + 2 * root_slots, 8) + bytes(2 * slot) + struct.pack("<H", 4)
    vtable += bytes(-len(vtable) % 4)
    root = 8 + len(vtable)
    vector = root + 8
    shared = vector + 4 + 4 * count
    first = shared + 4
    head = struct.pack("<I4s", root, identifier) + vtable
    head += struct.pack("<iI", len(vtable), 4) + struct.pack("<I", count)
    offsets = b"".join(
        struct.pack("<I", first + 4 * index - (vector + 4 + 4 * index)) for index in range(count)
    )
    tables = b"".join(struct.pack("<i", first + 4 * index - shared) for index in range(count))
    return head + offsets + struct.pack("<HH", 4, 4) + tables


@pytest.mark.parametrize(
    ("backend", "identifier", "slot"),
    [
        ("XnnpackBackend", b"XN01", 1),
        ("XnnpackBackend", b"XN01", 2),
        ("XnnpackBackend", b"XN01", 8),
        ("VulkanBackend", b"VK00", 1),
        ("VulkanBackend", b"VK00", 2),
        ("TOSABackend", b"TOSA", 1),
        ("NativeBackend", b"NPTG", 1),
    ],
)
def test_millions_of_empty_tables_end_in_time(backend: str, identifier: bytes, slot: int) -> None:
    found = bounded(backend, _many_tables(identifier, slot, 1_000_000))
    assert found.graph is None or found.issues


@pytest.mark.parametrize("element", ["port", "edge", "dim"])
def test_openvino_most_elements_that_are_read_end_in_time(element: str) -> None:
    inside = f"<{element}/>" * 290_000
    xml = f"<net><layers><layer><input>{inside}</input></layer></layers></net>"
    assert bounded("OpenvinoBackend", openvino(xml)).graph is not None


def test_half_a_legal_number_of_empty_tables_is_read() -> None:
    found = bounded("XnnpackBackend", _many_tables(b"XN01", 1, 100_000))
    assert found.graph is not None
    assert len(found.graph.nodes) == 100_000


def _same_table(identifier: bytes, slot: int, count: int) -> bytes:
    data = bytearray(_many_tables(identifier, slot, count))
    vector = data.index(struct.pack("<I", count))
    first = vector + 4 + 4 * count + 4
    for index in range(count):
        at = vector + 4 + 4 * index
        struct.pack_into("<I", data, at, first - at)
    return bytes(data)


def test_a_table_referred_to_a_million_times_ends_in_time() -> None:
    bounded("XnnpackBackend", _same_table(b"XN01", 1, 1_000_000))


def test_openvino_entity_bomb_is_refused() -> None:
    entities = "".join(f'<!ENTITY e{index} "{f"&e{index - 1};" * 10}">' for index in range(1, 10))
    xml = f'<!DOCTYPE net [<!ENTITY e0 "ha">{entities}]><net name="&e9;"/>'
    found = bounded("OpenvinoBackend", openvino(xml))
    assert "without a document type" in found.issues[0].message


def test_openvino_external_entity_is_refused() -> None:
    xml = '<!DOCTYPE net [<!ENTITY x SYSTEM "file:///etc/passwd">]><net name="&x;"/>'
    found = bounded("OpenvinoBackend", openvino(xml))
    assert "without a document type" in found.issues[0].message


@pytest.mark.parametrize("xml", ["<net>" * 100_000, "<net/>" * 3, "<net", "", "<a/>", "\0\1\2"])
def test_openvino_foreign_xml_is_refused(xml: str) -> None:
    assert bounded("OpenvinoBackend", openvino(xml)).format == "unreadable"


@pytest.mark.parametrize("element", ["layer", "port", "edge", "dim"])
def test_openvino_million_elements_end_in_time(element: str) -> None:
    inside = f"<{element}/>" * 950_000
    head = "<net><layers>" if element == "layer" else "<net><layers><layer><input>"
    tail = "</layers></net>" if element == "layer" else "</input></layer></layers></net>"
    found = bounded("OpenvinoBackend", openvino(head + inside + tail))
    assert found.format == "unreadable"


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"nodes":['])
def test_coreml_deep_json_is_refused(opening: str) -> None:
    data = (opening * 200_000).encode()[::-1]
    assert bounded("CoreMLBackend", data).format == "unreadable"
    assert bounded("CoreMLBackend", b"CMJR" + data[::-1]).format == "unreadable"


def test_coreml_folder_of_folders_ends_in_time() -> None:
    nodes = ",".join(
        f'{{"kind":1,"children":{{"{"d" * 20}":{index - 1}}}}}' for index in range(30_000)
    )
    data = f'{{"nodes":[{{"kind":1}},{nodes}]}}'.encode()[::-1]
    found = bounded("CoreMLBackend", data)
    assert any("cannot be followed" in issue.message for issue in found.issues)


def test_coreml_nested_blocks_beyond_the_limit_are_refused() -> None:
    inner = b""
    for _ in range(60):
        inner = body(3, operation("cond", "o", {}, inner))
    found = bounded("CoreMLBackend", folder({MODEL: model(inner)}))
    assert found.graph is None
    assert "nested at most" in found.issues[0].message


def test_coreml_nested_types_beyond_the_limit_are_refused() -> None:
    kind = b""
    for _ in range(60):
        kind = body(5, body(1, kind))
    block = body(3, operation("const", "c", {}) + entry(5, "val", body(2, kind)))
    found = bounded("CoreMLBackend", folder({MODEL: model(block)}))
    assert found.graph is None
    assert "nested at most" in found.issues[0].message


def test_coreml_millions_of_fields_end_in_time() -> None:
    found = bounded("CoreMLBackend", folder({MODEL: b"\x08\x00" * 4_000_000}))
    assert "protobuf fields" in found.issues[0].message


def test_coreml_hundreds_of_thousands_of_operations_end_in_time() -> None:
    found = bounded("CoreMLBackend", folder({MODEL: model(body(3, b"") * 600_000)}))
    assert "at most 150000 operations" in found.issues[0].message


def test_protobuf_budget_is_shared_by_nested_messages() -> None:
    budget = FieldBudget(fields=10)
    list(fields(memoryview(b"\x08\x00" * 9), budget))
    with pytest.raises(FormatError, match="protobuf fields"):
        list(fields(memoryview(b"\x08\x00" * 2), budget))


def test_coreml_blocks_with_many_outer_values_end_in_time() -> None:
    rows = b"".join(
        body(3, operation("if", f"v{index}", {}, body(2, "a"))) for index in range(8_000)
    )
    found = bounded("CoreMLBackend", folder({MODEL: model(rows)}))
    assert found.graph is not None
    assert len(found.graph.nodes) == 8_000


def test_ethosu_thousands_of_blocks_end_in_time() -> None:
    block = struct.pack("<16sIB11s", b"weight_data", 0, 0, b"")
    found = bounded("EthosUBackend", stream(block * 200_000))
    assert "at most 1000 blocks" in found.issues[0].message


def test_demo_text_of_millions_of_operations_ends_in_time() -> None:
    assert bounded("BackendWithCompilerDemo", b"1#" + b"a#" * 3_000_000).format == "unreadable"


def test_vgf_module_of_empty_instructions_is_refused() -> None:
    item = blob_of("VGF1 0.5.0")
    at = item.data.index(bytes.fromhex("03022307"))
    data = bytearray(item.data)
    data[at + 20 : at + 24] = bytes(4)
    found = bounded("VgfBackend", bytes(data))
    assert found.graph is not None
    assert any("an instruction inside" in issue.message for issue in found.issues)


@pytest.mark.parametrize("size", [1, 7, 8, 30, 47, 63, 127, 255])
@pytest.mark.parametrize("backend", sorted(one.id for one in BACKENDS.values() if one.decoder))
def test_zero_bytes_of_any_length_are_a_box(backend: str, size: int) -> None:
    bounded(backend, bytes(size))


def test_vgf_constants_that_grow_by_repetition_are_bounded() -> None:
    """Each composite holds the one before it 200 times: 64 words would become 200 ** 6 numbers."""
    words = [0x07230203, 0, 0, 0, 0, (4 << 16) | 21, 1, 32, 0, (4 << 16) | 43, 1, 2, 7]
    for ident in range(3, 9):
        words += [((3 + 200) << 16) | 44, 1, ident, *[ident - 1] * 200]
    with pytest.raises(FormatError, match="at most 4194304 elements"):
        read_graph(words, ())


def test_vgf_constants_of_a_huge_type_are_bounded() -> None:
    words = [0x07230203, 0, 0, 0, 0, (4 << 16) | 21, 1, 32, 0, (4 << 16) | 43, 1, 2, 1 << 20]
    words += [(4 << 16) | 43, 1, 3, 2, (5 << 16) | 44, 1, 4, 2, 2]
    words += [(5 << 16) | 4163, 5, 1, 3, 4, (3 << 16) | 46, 5, 6]
    with pytest.raises(FormatError, match="at most 4194304 elements"):
        read_graph(words, ())
