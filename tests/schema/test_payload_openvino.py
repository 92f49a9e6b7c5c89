"""OpenVINO payloads: exports of several releases, nested bodies, names that clash, damage."""

from __future__ import annotations

import struct
from functools import cache

import pytest

from schema import payloads
from schema.errors import FormatError
from schema.graph import NodeKind
from schema.payloads import Payload
from tests.schema import damage
from tests.schema.payload_files import DATA
from tests.schema.test_payload import assert_graph, assert_parts
from tests.schema.test_payload_backends import layer, openvino

FOLDER = DATA / "openvino"
EXPORTS = sorted(path.stem for path in FOLDER.glob("*.blob"))
MARK = b"RR_UPCVO"
# model -> operations, without those of bodies; bytes of the constants; inputs and outputs
FACTS = {
    "conv": (["Convolution", "ReLU"], 864, ["x", "relu"]),
    "dynamic": (["Multiply", "Add"], 0, ["a", "b", "sum", "product"]),
    "branches": (["Convert", "If"], 8, ["choice", "x", "either"]),
    "state": (["ReadValue", "Subgraph", "Assign"], 8, ["x", "total"]),
    "four_bits": (["FullyConnectedCompressed"], 162, ["x", "fc"]),
    "quantised": (["Subgraph", "FullyConnected", "Subtract", "Multiply"], 113, ["x", "fc"]),
}  # fmt: skip


@cache
def export(name: str) -> tuple[bytes, Payload]:
    data = (FOLDER / f"{name}.blob").read_bytes()
    return data, payloads.decode_strict("OpenvinoBackend", data, {}, [("device", b"CPU")])


def test_exports_of_four_releases_are_at_hand() -> None:
    assert {name.split("_")[0] for name in EXPORTS} == {
        "2024.5.0", "2025.1.0", "2025.4.1", "2026.4.1",
    }  # fmt: skip


@pytest.mark.parametrize("name", EXPORTS)
def test_export_of_each_release_is_read_whole(name: str) -> None:
    data, found = export(name)
    assert_parts(found, data)
    assert found.graph is not None
    assert_graph(found.graph)
    assert found.issues == ()
    operations, nbytes, interface = FACTS[name.split("_", 1)[1]]
    assert [node.target for node in found.graph.calls()] == operations
    assert payloads.total_bytes(found.constants) == nbytes
    assert list(found.external_ids.values()) == interface
    assert {"unreferenced", "undecoded"}.isdisjoint(part.kind for part in found.parts)
    used = {value.constant for value in _values(found) if value.constant}
    assert used == {constant.name for constant in found.constants}


def _values(found: Payload):
    assert found.graph is not None
    for graph in (found.graph, *found.graph.subgraphs.values()):
        yield from graph.values.values()


def test_export_of_2026_says_what_it_was_made_for() -> None:
    facts = export("2026.4.1_conv")[1].summary
    assert facts["OpenVINO"] == "2026.4.1"
    assert str(facts["compiled for"]).startswith("Intel AVX-512")
    assert "OpenVINO" not in export("2025.4.1_conv")[1].summary


def test_bodies_are_read_from_what_enters_to_what_leaves() -> None:
    for name in ("2024.5.0_branches", "2025.4.1_branches", "2026.4.1_branches"):
        graph = export(name)[1].graph
        node = next(node for node in graph.nodes if node.kind is NodeKind.CONTROL)
        assert node.subgraphs == ("either/then_body", "either/else_body")
        then = graph.subgraphs["either/then_body"]
        assert [inner.target for inner in then.nodes] == ["Parameter", "Sin", "Result"]
        assert then.outputs == ("sine",)


def test_four_bit_weights_have_their_type_and_shape() -> None:
    values = {value.name: value for value in _values(export("2025.4.1_four_bits")[1])}
    weight = values["weight"]
    assert (weight.tensor.dtype, weight.tensor.sizes) == ("u4", (8, 32))
    assert weight.constant_bytes == 128


def test_dynamic_sizes_are_unknown_and_not_minus_one() -> None:
    values = {value.name: value for value in _values(export("2026.4.1_dynamic")[1])}
    assert values["a"].tensor.sizes == ("?", 4)


@pytest.mark.parametrize("name", ["2025.4.1_state", "2026.4.1_quantised"])
def test_export_under_another_id_is_told_by_its_mark(name: str) -> None:
    data, expected = export(name)
    found = payloads.decode("RenamedBackend", data)
    has_mark = data[:8] == MARK
    assert found.graph == (expected.graph if has_mark else None)


def test_extracted_files_are_xml_and_constants() -> None:
    _, found = export("2026.4.1_conv")
    assert bytes(found.files["model.xml"]).startswith(b"<?xml")
    assert len(found.files["model.bin"]) == 864
    assert bytes(found.files["custom.xml"]).startswith(b"<?xml")


@pytest.mark.parametrize("device", [b"GPU", b"NPU", b"GPU.1", b"AUTO:GPU,CPU"])
@pytest.mark.parametrize("data", [b"", b"\x7fELF" + bytes(60), bytes(range(200))])
def test_export_for_another_device_is_a_box_without_error(device: bytes, data: bytes) -> None:
    found = payloads.decode_strict("OpenvinoBackend", data, {}, [("device", device)])
    assert_parts(found, data)
    assert found.graph is None
    assert device.decode() in found.format
    assert bytes(found.files["model.blob"]) == data
    assert [issue.severity.value for issue in found.issues] == ["info"]


def test_automatic_choice_that_fell_on_the_processor_is_read() -> None:
    data, expected = export("2025.4.1_conv")
    found = payloads.decode_strict("OpenvinoBackend", data, {}, [("device", b"AUTO")])
    assert found.graph == expected.graph


@pytest.mark.parametrize(
    ("prefix", "sentence"),
    [
        (MARK, "header"),
        (MARK + struct.pack("<IQ", 1, 1 << 40), r"header\.text"),
        (MARK + struct.pack("<IQ", 1, 4) + b"ov=1", "the custom data at 48"),
    ],
)
def test_text_before_the_stream_that_does_not_fit_is_refused(prefix: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        payloads.decode_strict("OpenvinoBackend", prefix + bytes(48))


def test_constants_of_one_name_keep_their_own_bytes() -> None:
    inner = layer(0, "Const", "w", 'offset="4" size="2"')
    loop = layer(1, "Loop", "loop").replace(
        "</layer>", f"<body><layers>{inner}</layers></body></layer>"
    )
    first = layer(0, "Const", "w", 'offset="0" size="4"')
    xml = f"<net><layers>{first}{loop}</layers></net>"
    found = payloads.decode_strict("OpenvinoBackend", openvino(xml, b"aaaabb"))
    assert found.graph is not None
    assert sorted(bytes(item.data) for item in found.constants) == [b"aaaa", b"bb"]
    body = found.graph.subgraphs["loop/body"]
    assert (found.graph.values["w"].constant_bytes, body.values["w"].constant_bytes) == (4, 2)
    assert body.values["w"].constant != found.graph.values["w"].constant


@pytest.mark.parametrize("name", ["", "loop/body", "OpenVINO"])
def test_body_named_like_the_network_is_not_its_own_subgraph(name: str) -> None:
    deepest = layer(0, "Sin", "s")
    middle = layer(1, "Loop", "loop").replace(
        "</layer>", f"<body><layers>{deepest}</layers></body></layer>"
    )
    outer = layer(1, "Loop", "loop").replace(
        "</layer>", f"<body><layers>{middle}</layers></body></layer>"
    )
    found = payloads.decode_strict(
        "OpenvinoBackend", openvino(f'<net name="{name}"><layers>{outer}</layers></net>')
    )
    assert found.graph is not None
    assert found.node_count == 3
    assert len(found.graph.subgraphs) == 2
    assert_graph(found.graph)


def test_many_lost_constants_are_one_sentence() -> None:
    rows = "".join(layer(index, "Const", f"w{index}", 'offset="9" size="9"') for index in range(50))
    found = payloads.decode("OpenvinoBackend", openvino(f"<net><layers>{rows}</layers></net>"))
    (issue,) = found.issues
    assert "the first of 50 constants" in issue.message


@pytest.mark.slow
@pytest.mark.parametrize("name", ["2026.4.1_branches", "2026.4.1_quantised", "2025.4.1_state"])
def test_damaged_export_is_refused_or_read_but_never_crashes(name: str) -> None:
    for data in damage.all_kinds(export(name)[0], 20261121, 40):
        found = payloads.decode("OpenvinoBackend", data)
        assert_parts(found, data)
        if found.graph is not None:
            assert_graph(found.graph)
        elif found.format == "unreadable":
            assert len(found.issues) == 1
