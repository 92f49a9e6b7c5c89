"""Vela's estimates, from the record of a compile for Ethos-U (tests/data/backends)."""

from __future__ import annotations

import pytest

from inspector.export.extract import PAYLOADS, items
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.graph.estimates import delegate_estimates
from inspector.tables.query import QueryError
from inspector.tables.registry import build
from inspector.tables.table import Table
from schema.errors import FormatError
from schema.payloads.ethosu.debug_tables import DebugTables
from schema.payloads.ethosu.estimates import layer_estimates, vela_summary
from tests.conftest import DATA

PROGRAM = DATA / "backends/ethosu_m1_int8.pte"


@pytest.fixture(scope="module")
def session() -> Session:
    return load_session([PROGRAM, PROGRAM.with_suffix(".etrecord")])


def _column(table: Table, title: str) -> list[object]:
    (column,) = (one for one in table.columns if one.title.split(" / ")[0] == title)
    return list(column.values)


def _table(session: Session, name: str) -> Table:
    found = build(name, session)
    assert isinstance(found, Table)
    return found


def test_cycles_of_layers_add_up_to_those_of_the_inference(session: Session) -> None:
    (found,) = delegate_estimates(session, "forward")
    assert found.summary is not None
    table = _table(session, "estimated-layers")
    assert sum(map(int, map(str, _column(table, "cycles")))) == found.summary.cycles == 8136
    assert set(_column(table, "origin")) == {"estimate"}
    assert _column(table, "MACs")[2] == 13824


def test_layers_are_joined_to_the_operators_they_were_compiled_from(session: Session) -> None:
    (found,) = delegate_estimates(session, "forward")
    by_name = {one.estimate.name: one for one in found.layers}
    conv = by_name["tosa_rescale_default"]
    assert conv.nodes == ("CONV2D_8", "RESCALE_13")
    assert "aten_convolution_default" in conv.recorded
    inner = by_name["#88"]  # of Vela's own, one half of a transposition
    assert inner.nodes == ("TRANSPOSE_5",)


def test_commands_of_the_stream_are_joined_to_their_layers(session: Session) -> None:
    (found,) = delegate_estimates(session, "forward")
    layers = dict(found.commands)
    assert len(layers) == 29
    named = {name: one.nodes for name, one in layers.items() if one is not None}
    assert named["CONV_10"] == ("CONV2D_8", "RESCALE_13")
    assert named["DMA_START_9"] == named["CONV_10"]  # its weights
    assert named["POOL_26"] == ("TRANSPOSE_14",)
    assert named["CONV_28"] == ("CONV2D_19", "TABLE_27")
    assert _table(session, "estimated-commands").length == 29


def test_memories_have_their_use_and_traffic(session: Session) -> None:
    table = _table(session, "estimated-memory")
    used = dict(zip(_column(table, "memory"), _column(table, "used"), strict=True))
    assert used["SRAM"] == 1104
    assert used["off-chip flash"] == 6896
    assert _column(table, "holds")[0] == "activations"


def test_tensors_in_sram_fit_its_use_and_do_not_overlap(session: Session) -> None:
    (found,) = delegate_estimates(session, "forward")
    placed = [
        (one.address, one.address + one.nbytes, one.first, one.last)
        for one in found.tensors
        if None not in (one.address, one.nbytes, one.first, one.last)
    ]
    assert len(placed) == len(found.tensors) == 8
    for index, (start, end, first, last) in enumerate(placed):
        for other in placed[:index]:
            at_once = first < other[3] and other[2] < last
            assert not at_once or end <= other[0] or other[1] <= start
    assert _table(session, "estimated-tensors").length == 8


def test_facts_name_the_accelerator(session: Session) -> None:
    assert "Ethos_U55_128" in _column(_table(session, "estimates"), "value")


def test_a_program_without_estimates_says_what_is_needed() -> None:
    other = load_session([DATA / "backends/tosa_m1.pte"])
    with pytest.raises(QueryError, match="the record of its compile by ETScope"):
        build("vela-layers", other)  # its name in former releases


def test_a_damaged_table_is_one_error_and_the_session_stays_readable(session: Session) -> None:
    with pytest.raises(FormatError, match="a column Op Cycles"):
        layer_estimates({"out_per-layer.csv": b"a,b\n1,2\n"})
    assert layer_estimates({}) == ()
    assert vela_summary({}) is None
    cells = b"Op Cycles,Name,Util% (MAC)\n-,x,inf\n"
    (layer,) = layer_estimates({"out_per-layer.csv": cells})
    assert (layer.cycles, layer.utilization, layer.name) == (None, None, "x")
    assert DebugTables({"out_debug.xml": b"<table name='perf'>"}).layer_operators() == ()
    assert DebugTables({}).command_layers([0, 4]) == (None, None)


@pytest.mark.parametrize("name", ["out_per-layer.csv", "out_debug.xml"])
def test_a_cell_longer_than_csv_allows_is_an_error_of_the_file(name: str) -> None:
    cell = b"Op Cycles,id\n" + b"9" * 200_000 + b",1\n"
    if name.endswith(".xml"):
        cell = b'<table name="perf">\n<![CDATA[\n' + cell + b"]]>\n</table>"
    with pytest.raises(FormatError, match=name):
        (layer_estimates if name.endswith(".csv") else DebugTables)({name: cell})


def test_tables_that_never_end_are_read_once() -> None:
    begins = b'<table name="perf"><![CDATA[' * 20_000
    blank = b'<table name="perf"><![CDATA[' + b" " * 200_000
    for text in (begins, blank):
        assert DebugTables({"out_debug.xml": text}).layer_operators() == ()


def test_numbers_beyond_64_bits_are_unknown() -> None:
    rows = b"id,size\n1,0x" + b"f" * 9_000 + b"\n"
    text = b'<table name="tensors">\n<![CDATA[\n' + rows + b"]]>\n</table>"
    (found,) = DebugTables({"out_debug.xml": text}).tensors()
    assert found.nbytes is None


def test_what_the_tools_left_is_extracted(session: Session) -> None:
    found, issues = items(session, ("forward",), (PAYLOADS,))
    assert not issues
    names = {"/".join(one.path[2:]) for one in found}
    assert {"kept/out.tosa", "kept/output/out_per-layer.csv", "kept/output/out_debug.xml"} <= names


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("tosa_m1", "model.tosa"),
        ("vgf_conv", "module_0.spv"),
        ("vgf_conv", "model.vgf"),
    ],
)
def test_payloads_are_extracted_as_the_files_of_their_tools(name: str, file: str) -> None:
    found, _ = items(load_session([DATA / f"backends/{name}.pte"]), ("forward",), (PAYLOADS,))
    assert file in {one.path[-1] for one in found}


def test_a_package_is_extracted_from_a_delegate() -> None:
    found, _ = items(load_session([DATA / "backends/coreml_m1.pte"]), ("forward",), (PAYLOADS,))
    paths = {"/".join(one.path[2:]) for one in found}
    assert any(path.endswith(".mlmodel") and ".mlpackage" in path for path in paths), paths
