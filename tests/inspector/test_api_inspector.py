"""The Inspector on its own: arguments, errors, values that are missing, runs that differ."""

from __future__ import annotations

import io
import logging
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inspector import Event, EventBlock, Inspector, MissingTensor, PerfData, TimeScale
from inspector.files.load import load_session
from schema import etdump
from schema.bundled import decode as decode_bundle
from schema.etdump import DebugEvent, DebugTensor, DebugValue, ProfileEvent, ValueType
from tests.architecture.tree import run_python
from tests.inspector.sessions import DATA, folders, label

MM = DATA / "corpus" / "v1.5.1" / "mm_portable"
CONVNET = DATA / "corpus" / "v1.5.1" / "convnet_xnnpack"
TWO = DATA / "extra" / "two_methods"


def opened(folder: Path, **options: object) -> Inspector:
    """Return an Inspector on all files of a session folder."""
    arguments: dict[str, object] = {"etdump_path": folder / "run.etdp"}
    if (folder / "model.etrecord").exists():
        arguments["etrecord"] = str(folder / "model.etrecord")
    if (folder / "run.debug").exists():
        arguments["debug_buffer_path"] = str(folder / "run.debug")
    else:
        arguments["etdump_data"], arguments["etdump_path"] = (
            (folder / "run.etdp").read_bytes(),
            None,
        )
        arguments["debug_buffer_path"] = str(folder / "run.etdp")  # any bytes: nothing points there
    return Inspector(**{**arguments, **options})


def traced(*runs: list[etdump.AnyEvent]) -> bytes:
    """Return a trace of runs named Execute."""
    return etdump.encode(etdump.dump(etdump.run("Execute", events) for events in runs))


def inspected(data: bytes, **options: object) -> Inspector:
    """Return an Inspector on a trace alone."""
    with pytest.warns(UserWarning, match="Output Buffer not found"):
        return Inspector(etdump_data=data, **options)


# ---- arguments
def test_init_path_and_data_together_raises_value_error() -> None:
    data = (MM / "run.etdp").read_bytes()
    for arguments in ({}, {"etdump_path": "x", "etdump_data": data}):
        with pytest.raises(ValueError, match="exactly one of etdump_path or etdump_data"):
            Inspector(**arguments)


@pytest.mark.parametrize(("source", "target"), [("CYCLES", "MS"), ("NS", "CYCLES")])
def test_init_cycles_with_time_raises_runtime_error(source: str, target: str) -> None:
    scales = {"source_time_scale": TimeScale[source], "target_time_scale": TimeScale[target]}
    with pytest.raises(RuntimeError, match="both the source and target time scale"):
        Inspector(etdump_path=MM / "run.etdp", **scales)


def test_init_record_of_unknown_type_raises_type_error() -> None:
    with pytest.raises(TypeError, match="Unsupported ETRecord type"):
        Inspector(etdump_path=MM / "run.etdp", etrecord=3)


def test_init_without_debug_buffer_warns() -> None:
    with pytest.warns(UserWarning, match="Tensor Debug Data will not be available"):
        Inspector(etdump_path=MM / "run.etdp")


def test_init_documented_aliases_are_the_same_arguments() -> None:
    plain = opened(MM)
    named = Inspector(
        etdump_path=MM / "run.etdp",
        etrecord_path=str(MM / "model.etrecord"),
        buffer_path=str(MM / "run.debug"),
    )
    pd.testing.assert_frame_equal(
        plain.to_dataframe().drop(columns="debug_data"),
        named.to_dataframe().drop(columns="debug_data"),
    )
    assert named.event_blocks[1].run_output.arrays()[0].shape == (2, 2)


def test_init_alias_and_argument_together_raises_type_error() -> None:
    with pytest.raises(TypeError, match="buffer_path and debug_buffer_path"):
        Inspector(etdump_path=MM / "run.etdp", debug_buffer_path="a", buffer_path="b")
    with pytest.raises(TypeError, match="no argument 'etrecords'"):
        Inspector(etdump_path=MM / "run.etdp", etrecords="b")


def test_init_unknown_reference_graph_lists_those_there_are() -> None:
    with pytest.raises(KeyError, match="edge_dialect_exported_program/forward"):
        opened(MM, reference_graph_name="edge_after_transform")


def test_init_reference_graph_by_name_names_the_operators() -> None:
    folder = DATA / "corpus" / "special" / "xnnpack_two_delegates"
    recorded = opened(folder, reference_graph_name="aten")
    assert {
        name for block in recorded.event_blocks for e in block.events for name in e.op_types
    } <= {
        "mm.default",
        "add.Tensor",
        "sub.Tensor",
    }


def test_init_foreign_scale_objects_are_taken_by_value() -> None:
    plain = opened(MM).to_dataframe()
    named = opened(MM, source_time_scale="ns", target_time_scale="us").to_dataframe()
    assert "avg (us)" in named.columns
    np.testing.assert_allclose(named["avg (us)"], plain["avg (ms)"] * 1000)


# ---- every session opens, with torch left alone
@pytest.mark.parametrize("folder", folders("run.etdp"), ids=label)
def test_to_dataframe_every_session_has_a_row_an_event(folder: Path) -> None:
    inspector = opened(folder)
    frame = inspector.to_dataframe()
    assert len(frame) == sum(len(block.events) for block in inspector.event_blocks)
    text = io.StringIO()
    inspector.print_data_tabular(text)
    shown = sum(name != "OPERATOR_CALL" for name in frame["event_name"])
    assert text.getvalue().count("├") + 1 == shown or shown == 0


@pytest.mark.slow
def test_tables_of_a_session_load_no_torch() -> None:
    code = (
        "import io, sys; from inspector import Inspector\n"
        f"folder = {str(CONVNET)!r}\n"
        "inspector = Inspector(etdump_path=folder + '/run.etdp',"
        " etrecord=folder + '/model.etrecord', debug_buffer_path=folder + '/run.debug',"
        " program=folder + '/model.pte')\n"
        "frame = inspector.to_dataframe()\n"
        "inspector.print_data_tabular(io.StringIO())\n"
        "inspector.save_data_to_tsv(io.StringIO())\n"
        "inspector.find_total_for_module('L__self__')\n"
        "inspector.event_blocks[1].run_output.arrays()\n"
        "assert 'torch' not in sys.modules and 'executorch' not in sys.modules\n"
    )
    run_python(code)


def test_import_of_the_api_loads_nothing_heavy() -> None:
    code = (
        "import inspector, sys\n"
        "for name in inspector._HOME: getattr(inspector, name)\n"
        "heavy = {'torch', 'pandas', 'executorch', 'PySide6', 'tabulate'} & set(sys.modules)\n"
        "print(sorted(heavy))\n"
    )
    assert run_python(code).strip() == "[]"


def test_package_unknown_name_raises_attribute_error() -> None:
    import inspector

    with pytest.raises(AttributeError, match="no_such_name"):
        _ = inspector.no_such_name
    assert "Inspector" in dir(inspector)


def test_names_for_type_checkers_are_those_of_the_package() -> None:
    import inspector

    stub = Path(inspector.__file__).with_suffix(".pyi").read_text("utf-8")
    pairs = set(re.findall(r"(\w+) as (\w+)", stub))
    assert {name for _, name in pairs} == set(inspector._HOME)
    for name, home in inspector._HOME.items():
        assert re.search(rf"inspector\.{re.escape(home)} import[\s(]+{name} as", stub), name


# ---- values
def test_debug_data_without_buffer_is_missing_and_says_so() -> None:
    inspector = inspected((MM / "run.etdp").read_bytes(), etrecord=str(MM / "model.etrecord"))
    value = inspector.event_blocks[1].events[0].debug_data[0]
    assert isinstance(value, MissingTensor)
    assert not value
    assert (value.shape, value.dtype) == ((2, 2), "float32")
    assert "no debug buffer" in value.reason


def test_debug_data_outside_of_the_buffer_is_missing(tmp_path: Path) -> None:
    short = tmp_path / "run.debug"
    short.write_bytes((MM / "run.debug").read_bytes()[:64])
    inspector = Inspector(etdump_path=MM / "run.etdp", debug_buffer_path=short)
    values = [value for e in inspector.event_blocks[1].events for value in e.debug_data.arrays()]
    missing = [value for value in values if isinstance(value, MissingTensor)]
    assert missing
    assert "64 bytes" in missing[0].reason
    assert len(missing) < len(values)


def test_debug_data_is_a_tensor_over_the_buffer() -> None:
    torch = pytest.importorskip("torch")
    inspector = opened(MM)
    event = inspector.event_blocks[1].events[0]
    tensor, array = event.debug_data[0], event.debug_data.arrays()[0]
    assert isinstance(tensor, torch.Tensor)
    assert torch.equal(tensor, torch.from_numpy(array.copy()))
    tensor.zero_()  # in private memory: what is read again is changed, the file is not
    assert not event.debug_data[0].any()
    assert opened(MM).event_blocks[1].events[0].debug_data[0].any()


def test_debug_data_channels_last_is_read_by_its_strides(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    value = DebugValue(ValueType.TENSOR, DebugTensor(4, (1, 2, 2, 2), (8, 1, 4, 2), 0))
    data = traced([DebugEvent(value, 0, 0), ProfileEvent("OPERATOR_CALL", 0, 0, 1, 2)])
    (tmp_path / "run.debug").write_bytes(np.arange(8, dtype=np.int64).tobytes())
    inspector = Inspector(etdump_data=data, debug_buffer_path=tmp_path / "run.debug")
    tensor = inspector.event_blocks[0].events[0].debug_data[0]
    assert isinstance(tensor, torch.Tensor)
    assert tensor[0, 1].tolist() == [[1, 3], [5, 7]]


@pytest.mark.parametrize("session", ["counter_state", "kv_cache"])
def test_values_that_differ_from_run_to_run_are_all_kept(session: str) -> None:
    inspector = opened(DATA / "extra" / session)
    block = max(inspector.event_blocks, key=lambda block: len(block.run_outputs))
    outputs = [output.arrays() for output in block.run_outputs]
    assert len(outputs) > 1
    assert any(
        not np.array_equal(one, two)
        for one, two in zip(outputs[0], outputs[1], strict=True)
        if isinstance(one, np.ndarray)
    )
    first = [value for value in block.run_output.arrays() if isinstance(value, np.ndarray)]
    np.testing.assert_array_equal(first[0], outputs[0][0])
    event = next(event for event in block.events if event.debug_data)
    assert len(event.debug_data_runs) == len(block.run_outputs)
    assert event.debug_data == event.debug_data_runs[0]


def test_debug_data_of_a_loop_with_other_passes_is_that_of_its_run() -> None:
    def run(passes: int, value: int) -> list[etdump.AnyEvent]:
        logged = DebugEvent(DebugValue(ValueType.INT, int_value=value), 0, 1)
        once = [logged, ProfileEvent("OPERATOR_CALL", 0, 1, 5, 7)]
        return [ProfileEvent("JF_CALL", 0, 0, 1, 2), *once * passes]

    block = inspected(traced(run(2, 10), run(3, 20))).event_blocks[0]
    values = [list(values) for values in block.events[1].debug_data_runs]
    assert values == [[10, 10], [20, 20, 20]]


# ---- records
def test_methods_of_a_record_without_forward_are_told_apart() -> None:
    inspector = opened(TWO)
    methods = [block.method for block in inspector.event_blocks if block.name == "Execute"]
    assert sorted(methods) == ["decode", "encode"]
    for block in inspector.event_blocks:
        found = {operator for event in block.events for operator in event.op_types}
        wanted = {"encode": "aten.tanh.default", "decode": "aten.sigmoid.default"}
        assert (wanted.get(block.method or "", "") in found) == (block.method is not None)


def test_program_adds_operators_where_the_record_has_none() -> None:
    plain, linked = opened(CONVNET), opened(CONVNET, program=CONVNET / "model.pte")
    kernel = [
        next(e for e in block.events if e.name.startswith("Convolution (NHWC, F32) IGEMM"))
        for block in (plain.event_blocks[1], linked.event_blocks[1])
    ]
    assert (kernel[0].op_types, kernel[0].link) == ([], "DELEGATE_CALL_ONLY")
    assert (kernel[1].op_types, kernel[1].link) == (["aten.convolution.default"], "ORDER")
    assert "models.py" in next(iter(kernel[1].stack_traces.values()))
    both = zip(plain.event_blocks[1].events, linked.event_blocks[1].events, strict=True)
    assert all(two.op_types == one.op_types for one, two in both if one.op_types)


def test_program_alone_names_the_backends(tmp_path: Path) -> None:
    inspector = inspected((CONVNET / "run.etdp").read_bytes(), program=(CONVNET / "model.pte"))
    calls = [e for e in inspector.event_blocks[1].events if e.name == "DELEGATE_CALL"]
    assert {event.delegate_backend_name for event in calls} == {"XnnpackBackend"}


def test_program_of_another_kind_raises() -> None:
    with pytest.raises(TypeError, match="program is a path"):
        opened(CONVNET, program=3)
    with pytest.raises(ValueError, match="expected a program"):
        opened(CONVNET, program=CONVNET / "run.etdp")


def test_framework_scopes_get_nothing_of_instruction_0() -> None:
    for block in opened(CONVNET).event_blocks:
        for event in block.events:
            if "::" in event.name:
                assert (event.debug_handles, event.op_types) == (None, [])


def test_unmapped_delegate_id_that_contains_a_mapped_one_stays_unmapped() -> None:
    from tests.inspector.api_traces import DELEGATES

    events = [ProfileEvent(None, 0, 1, 1, 2, text_id, None) for text_id in (0, 10)]
    events += [ProfileEvent(None, 0, 1, 1, 2, -1, name) for name in ("conv", "deconvolution")]
    record = _changed_record(DELEGATES)
    found = inspected(traced(events), etrecord=record).event_blocks[0].events
    assert [event.debug_handles for event in found] == [[1, 2], None, [4], None]
    assert {event.delegate_backend_name for event in found} == {"Odd"}


def _changed_record(delegates: dict[str, object]) -> object:
    import json

    from schema import etrecord

    given = etrecord.decode((MM / "model.etrecord").read_bytes())
    data = json.dumps({"forward": delegates}).encode()
    return etrecord.replace_member(given, "delegate_map", data)


def test_delegate_events_without_any_mapping_warn_and_take_the_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events = [ProfileEvent(None, 0, 2, 1, 2, 5, None)]
    record = _changed_record({"1": {"name": "Odd", "delegate_map": {}}})
    with caplog.at_level(logging.WARNING):
        event = inspected(traced(events), etrecord=record).event_blocks[0].events[0]
        assert event.op_types == ["aten.sub.Tensor"]
    assert "instruction id 2" in caplog.text


def test_reference_output_is_that_of_the_test_case() -> None:
    torch = pytest.importorskip("torch")
    folder = DATA / "extra" / "bundled_cases"
    inspector = opened(folder)
    bundle = decode_bundle((folder / "model.bpte").read_bytes())
    cases = bundle.method_test_suites[0].test_cases
    for block in inspector.event_blocks:
        index = block.bundled_input_index
        if index < 0:
            assert block.reference_output is None  # several cases, and none was run
            continue
        wanted = np.frombuffer(cases[index].expected_outputs[0].val.data, dtype=np.float32)
        np.testing.assert_array_equal(block.reference_output.arrays()[0].reshape(-1), wanted)
        assert isinstance(block.reference_output[0], torch.Tensor)


def test_reference_output_of_a_lone_tensor_is_one_output() -> None:
    block = opened(MM).event_blocks[1]
    assert len(block.reference_output) == len(block.run_output) == 1


# ---- objects made by hand
def test_event_block_made_by_hand_has_the_documented_columns() -> None:
    events = [
        Event("one", PerfData([1.0, 3.0]), ["a"] * 5, is_delegated_op=False, _start_time=[1, 2]),
        Event("two", None, is_delegated_op=True, delegate_debug_identifier=4),
    ]
    frame = EventBlock("mine", events).to_dataframe(include_units=True)
    assert frame["avg (ms)"].iloc[0] == 2.0
    assert frame["op_types"][0] == "['a', 'a' ... 'a'] (5 total)"
    assert frame["delegate_debug_identifier"][1] == 4
    assert list(frame["event_block_name"]) == ["mine", "mine"]


def test_event_block_of_some_events_of_a_trace_keeps_their_rows() -> None:
    block = opened(MM).event_blocks[1]
    kernels = [event for event in block.events if event.name.startswith("native_call")]
    part = EventBlock(block.name, kernels).to_dataframe()
    whole = block.to_dataframe()
    wanted = whole[whole["event_name"].str.startswith("native_call")].reset_index(drop=True)
    shown = ["event_name", "raw", "p50", "op_types", "stack_traces", "start_time"]
    pd.testing.assert_frame_equal(part[shown], wanted[shown])


def test_trace_without_events_gives_an_empty_table() -> None:
    inspector = inspected(etdump.encode(etdump.dump([])))
    frame = inspector.to_dataframe()
    assert (len(frame), inspector.event_blocks) == (0, [])
    assert "p90 (ms)" in frame.columns
    text = io.StringIO()
    inspector.print_data_tabular(text)
    assert "event_name" in text.getvalue()


def test_perf_data_statistics_interpolate_linearly() -> None:
    perf = PerfData([1.0, 2.0, 4.0])
    assert (perf.p10, perf.p50, perf.p90) == (1.2, 2.0, 3.6)
    assert (perf.avg, perf.min, perf.max) == (pytest.approx(7 / 3), 1.0, 4.0)


def test_events_index_slice_and_negative() -> None:
    events = opened(MM).event_blocks[1].events
    assert events[-1] is events[len(events) - 1]
    assert [event.name for event in events[:2]] == [events[0].name, events[1].name]
    with pytest.raises(IndexError):
        _ = events[len(events)]


def test_clock_of_32_bits_going_around_inside_a_delegate_is_a_short_time() -> None:
    wrapped = [ProfileEvent(None, 0, 0, 2**32 - 1001, 1000, 1, None)]
    event = inspected(traced(wrapped)).event_blocks[0].events[0]
    assert event.perf_data.raw == [0.002]
    doubled = inspected(traced(wrapped), delegate_time_scale_converter=lambda _, ticks: ticks * 2)
    assert doubled.event_blocks[0].events[0].perf_data.raw == [4000]


def test_find_total_for_module_sums_kernels_once() -> None:
    inspector = opened(MM)
    kernels = [e for b in inspector.event_blocks for e in b.events if e.name.startswith("native")]
    wanted = sum(event.perf_data.avg for event in kernels)
    assert inspector.find_total_for_module("L__self__") == pytest.approx(wanted)
    assert inspector.find_total_for_module("nowhere") == 0.0


def test_parser_that_returns_a_number_raises() -> None:
    data = traced([ProfileEvent(None, 0, 0, 1, 2, 1, None, b"abc")])
    inspector = inspected(data, delegate_metadata_parser=lambda _: 5)
    with pytest.raises((ValueError, TypeError)):
        inspector.to_dataframe(include_delegate_debug_data=True)


def test_session_of_an_inspector_serves_the_other_analyses() -> None:
    from inspector.profile.methods import analyse_profile

    inspector = opened(CONVNET, program=CONVNET / "model.pte")
    rows = analyse_profile(inspector.session).rows
    assert [row.event_name for row in rows] == [
        event.name for block in inspector.event_blocks for event in block.events
    ]
    alone = analyse_profile(load_session([CONVNET])).rows
    assert [row.op_types for row in rows] == [row.op_types for row in alone]
