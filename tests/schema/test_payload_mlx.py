"""MLX payloads: every operation of the stock schema, slots that are reused, nested chains."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schema import payloads
from schema.flatbuf.writer import write_root
from schema.graph import NodeKind
from schema.payloads import Payload
from schema.payloads.mlx import tables as m
from schema.payloads.mlx.operations import COLUMNS, NAMES, UNION
from tests.schema import payload_flatc as flatc
from tests.schema.test_payload import assert_graph, assert_parts

SCHEMA = flatc.schema_path("mlx/serialization/schema.fbs")
TYPES = {
    "Tid": "t", "Vid": "v", "IntOrVid": "d", "FloatOrVid": "g", "VidOrTid": "w",
    "IntOrVidOrTid": "k", "int32": "i", "uint32": "u", "uint64": "L", "float": "f", "bool": "b",
    "int8": "y", "string": "s",
}  # fmt: skip


def op(kind: str, **fields: Any) -> m.Instruction:
    """Return an instruction; what is not said is absent or has its default."""
    table = UNION.members[NAMES.index(kind) + 1]
    assert table is not None
    defaults = {field.name: field.default for field in table.fields}
    return m.Instruction(SimpleNamespace(kind=kind, **(defaults | fields)))


def number(literal: int = 0, vid: int | None = None) -> SimpleNamespace:
    return SimpleNamespace(literal=literal, vid=vid, is_vid=vid is not None)


def slots(*numbers: int, kind: int = 0) -> tuple[m.SlotVariant, ...]:
    return tuple(m.SlotVariant(index, kind) for index in numbers)


def payload(graph: m.MLXGraph) -> bytes:
    return b"\0\0\0\0MLX0" + bytes(16) + write_root(m.GRAPH, graph, b"")


def decode(graph: m.MLXGraph, named: Mapping[str, memoryview] | None = None) -> Payload:
    data = payload(graph)
    found = payloads.decode_strict("MLXBackend", data, named or {})
    assert_parts(found, data)
    assert found.graph is not None
    assert_graph(found.graph)
    return found


def chains(*rows: tuple[m.Instruction, ...], **more: Any) -> m.MLXGraph:
    return m.MLXGraph("1", instruction_chains=tuple(map(m.Chain, rows)), **more)


def test_every_write_of_a_slot_makes_a_value_of_its_own() -> None:
    rows = (op("Exp", x=0, out=2), op("Sin", x=2, out=3), op("Cos", x=3, out=2))
    last = op("Add", a=2, b=0, out=1)
    found = decode(chains((*rows, last), input_map=slots(0), output_map=slots(1)))
    nodes = found.graph.nodes
    assert [node.outputs for node in nodes] == [
        ("tensor_2",), ("tensor_3",), ("tensor_2.1",), ("tensor_1",),
    ]  # fmt: skip
    assert nodes[3].inputs == ("tensor_2.1", "tensor_0")
    assert dict(found.external_ids) == {0: "tensor_0", 1: "tensor_1"}


def test_update_in_place_reads_the_old_value_and_makes_the_new_one() -> None:
    step = {"axis": number(1), "start": number(vid=0), "stop": number(4)}
    rows = (op("SliceUpdate", dst=1, update=0, out=1, **step),)
    found = decode(chains(rows, input_map=slots(0), mutable_buffer_map=slots(1)))
    (node,) = found.graph.nodes
    assert node.inputs == ("tensor_1", "tensor_0", "value_0")
    assert node.outputs == ("tensor_1.1",)
    literals = {arg.name: arg.literal for arg in node.args if not arg.values}
    assert literals == {"axis": 1, "stop": 4}


def test_named_slots_of_inputs_and_buffers_are_no_missing_constants() -> None:
    named = (m.NamedSlot("ab_w", m.SlotVariant(0)), m.NamedSlot("ab_x", m.SlotVariant(1)))
    graph = chains(
        (op("Addmm", mat1=1, mat2=0, out=2),), num_constant_tensors=1, num_input_tensors=1,
        num_output_tensors=1, input_map=slots(1), output_map=slots(2), named_slots=named,
        tensor_meta=(m.MlxTensor((m.ShapeDim(2), m.ShapeDim(-1, 1, 8), m.ShapeDim(-1, 2, -1)), 6),),
    )  # fmt: skip
    found = decode(graph, {"ab_w": memoryview(b"12345678")})
    assert [(item.name, item.nbytes) for item in found.constants] == [("ab_w", 8)]
    weight = found.graph.values["tensor_0"]
    assert (weight.constant, weight.constant_bytes) == ("ab_w", 8)
    assert weight.tensor.sizes == (2, "1..8", "2..")
    assert found.issues == ()
    assert "1 of 1 named constants" in decode(graph).issues[0].message


def test_branches_are_subgraphs_and_give_what_is_read_later() -> None:
    main = (
        op("ItemInt", x=0, out=0),
        op("If", cond=number(vid=0), then_chain_idx=1, else_chain_idx=2),
        op("Neg", x=3, out=1),
    )
    then = (op("Exp", x=0, out=2), op("Abs", x=2, out=3))
    graph = chains(main, then, (op("Sin", x=4, out=3),), input_map=slots(0, 4), output_map=slots(1))
    found = decode(graph)
    branch = found.graph.nodes[1]
    assert branch.kind is NodeKind.CONTROL
    assert branch.subgraphs == ("chain_1", "chain_2")
    assert branch.inputs == ("value_0", "tensor_0", "tensor_4")
    assert branch.outputs == ("tensor_3",)  # tensor_2 is the branch's own
    assert found.node_count == 6


def test_scan_reads_what_it_carries_and_not_its_own_slices() -> None:
    scan = op("Scan", originals=(0,), sliced=(3,), outputs=(1,), carry=(4,), body_chain_idx=1)
    body = (op("Add", a=3, b=4, out=4), op("Multiply", a=4, b=5, out=1))
    found = decode(chains((scan,), body, input_map=slots(0, 4, 5), output_map=slots(1)))
    (node,) = found.graph.nodes
    assert node.inputs == ("tensor_0", "tensor_4", "tensor_5")
    assert node.outputs == ("tensor_3", "tensor_1", "tensor_4.1")


@pytest.mark.parametrize(
    ("graph", "sentence"),
    [
        (chains((op("Exp", x=0, out=1),), main_chain_idx=3), "main chain 3"),
        (chains((op("If", cond=number(), then_chain_idx=0, else_chain_idx=9),)), "chain 0"),
        (chains(), "main chain 0"),
    ],
    ids=["main", "branch", "none"],
)
def test_chain_that_does_not_exist_is_an_issue(graph: m.MLXGraph, sentence: str) -> None:
    assert any(sentence in issue.message for issue in decode(graph).issues)


def test_chain_that_runs_itself_is_read_once() -> None:
    again = op("If", cond=number(), then_chain_idx=1, else_chain_idx=1)
    found = decode(chains((again,), (again, op("Exp", x=0, out=0))))
    assert found.node_count == 3


@pytest.mark.slow
def test_chains_that_pass_on_ever_more_slots_end_in_a_refusal() -> None:
    rows = [
        (op("Exp", x=2 * index, out=2 * index + 1),
         op("If", cond=number(), then_chain_idx=index + 1, else_chain_idx=index + 1))
        for index in range(3000)
    ]  # fmt: skip
    found = payloads.decode("MLXBackend", payload(chains(*rows)))
    assert found.format == "unreadable"
    assert "slots passed on" in found.issues[0].message


def _stock_tables() -> dict[str, list[tuple[str, str, str]]]:
    text = re.sub(r"//[^\n]*", "", SCHEMA.read_text(encoding="utf-8"))
    found: dict[str, list[tuple[str, str, str]]] = {}
    for name, body in re.findall(r"table (\w+)Node\s*{(.*?)}", text, re.DOTALL):
        rows = re.findall(r"(\w+):\s*(\[?)(\w+)(\]?)\s*(?:=\s*([\w.]+))?", body)
        found[name] = [
            (field, f"{opening}{TYPES[kind]}{closing}", default)
            for field, opening, kind, closing, default in rows
        ]
    return found


@pytest.mark.interop
def test_operations_are_those_of_the_stock_schema() -> None:
    stock = [name.removesuffix("Node") for name in flatc.union_members(SCHEMA, "OpNode")]
    assert list(NAMES) == stock


@pytest.mark.interop
def test_fields_of_each_operation_are_those_of_the_stock_schema() -> None:
    stock = _stock_tables()
    assert set(stock) == set(NAMES)
    for name, rows in stock.items():
        columns = [(column.name, column.code.replace("*", "")) for column in COLUMNS[name]]
        assert columns == [(field, kind) for field, kind, _ in rows], name
        table = UNION.members[NAMES.index(name) + 1]
        assert table is not None
        for field, (_, kind, default) in zip(table.fields, rows, strict=True):
            if default == "null":
                assert field.default is None, (name, field.name)
            elif default and not kind.startswith("["):
                expected = {"true": 1.0, "false": 0.0}.get(default)
                expected = float(default) if expected is None else expected
                assert float(field.default) == expected, (name, field.name)


def _json_value(kind: str, ident: int) -> Any:
    if kind.startswith("["):
        return [_json_value(kind.strip("[]"), ident + index) for index in range(2)]
    if kind in "tv":
        return {"idx": ident}
    if kind in "dgwk":
        value = {"is_vid": True, "vid": {"idx": ident}}
        return {"kind": 2, "tid": {"idx": ident}} if kind == "k" else value
    return {"b": True, "s": "text", "f": 0.5, "y": 6}.get(kind, 1 + ident % 90)


@pytest.mark.interop
def test_every_operation_that_flatc_writes_is_read_field_by_field(tmp_path: Path) -> None:
    stock = _stock_tables()
    rows = [
        {"op_type": f"{name}Node",
         "op": {field: _json_value(kind, 10 * number_ + position)
                for position, (field, kind, _) in enumerate(stock[name])}}
        for number_, name in enumerate(NAMES)
    ]  # fmt: skip
    content = {"version": "1", "instruction_chains": [{"instructions": rows}]}
    data = b"\0\0\0\0MLX0" + bytes(16) + flatc.write(SCHEMA, content, tmp_path)
    found = payloads.decode_strict("MLXBackend", data)
    assert found.graph is not None
    assert_graph(found.graph)
    assert_parts(found, data)
    assert [node.target for node in found.graph.nodes] == list(NAMES)
    for number_, (name, node) in enumerate(zip(NAMES, found.graph.nodes, strict=True)):
        used = set(
            re.findall(r"\d+(?=(?:\.\d+)?(?:\s|$))", " ".join((*node.inputs, *node.outputs)))
        )
        for position, (field, kind, _) in enumerate(stock[name]):
            if kind.strip("[]") in "tvdgwk":
                assert str(10 * number_ + position) in used, (name, field)
            elif not field.endswith("chain_idx"):
                assert field in node.attributes, (name, field)


def test_payload_of_a_newer_schema_keeps_its_graph() -> None:
    data = bytearray(payload(chains((op("Exp", x=0, out=1), op("Sin", x=1, out=2)))))
    tag = bytes([NAMES.index("Sin") + 1])
    at = data.index(tag, data.index(b"MLX0") + 20)
    while True:  # the tag of the second instruction, by trying
        changed = bytes(data[:at]) + b"\xf0" + bytes(data[at + 1 :])
        found = payloads.decode("MLXBackend", changed)
        if found.graph is not None and any(n.target == "Unknown(240)" for n in found.graph.nodes):
            break
        at = data.index(tag, at + 1)
    assert [node.target for node in found.graph.nodes] == ["Exp", "Unknown(240)"]
    assert any("newer schema" in issue.message for issue in found.issues)


def test_data_segment_is_a_part_of_its_own() -> None:
    flat = write_root(m.GRAPH, chains((op("Exp", x=0, out=1),)), b"")
    start = 24 + len(flat) + -(24 + len(flat)) % 16
    head = struct.pack("<I4sQQ", 0, b"MLX0", start, 5)
    data = (head + flat).ljust(start, b"\0") + b"12345"
    found = payloads.decode_strict("MLXBackend", data)
    assert [(p.name, p.nbytes) for p in found.parts][-1] == ("data segment", 5)
    assert_parts(found, data)
