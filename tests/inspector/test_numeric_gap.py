"""Numeric gaps on committed sessions: coverage, comparators, references, refusals."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.files.load import load_session
from tests.inspector.sessions import DATA, folders, label

pytestmark = pytest.mark.slow

NO_RECORD = ("etdump_unprefixed", "nested_branches", "scan_rows")
OTHER_INPUTS = ("dynamic_rows",)  # run with other shapes than were recorded
DAMAGED_BY_THE_RUNTIME = 1e-5  # relative to what plain reordering of sums explains
SESSIONS = [path for path in folders("run.debug") if path.name not in NO_RECORD]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's deserialiser has its own
        yield


def gap_of(folder: Path, **options: Any) -> Any:
    from inspector.numerics.replay.analysis import Options, analyse_gap

    return analyse_gap(load_session([str(folder)]), Options(**options))


@pytest.mark.parametrize("folder", SESSIONS, ids=label)
def test_gap_of_every_session_compares_nine_outputs_of_ten(folder: Path) -> None:
    report = gap_of(folder, runs=(0,))
    cover = report.coverage(report.runs)
    assert cover["compared"] + cover["stated_reasons"] == cover["instruction_outputs"]
    assert cover["instruction_outputs"] or folder.name == "identity"  # which has no instructions
    if folder.name not in OTHER_INPUTS:
        assert cover["compared"] >= 0.9 * cover["instruction_outputs"]
    for run in report.runs:
        for row in run.rows:
            assert row.compared != bool(row.reason)


@pytest.mark.parametrize("name", ["tinygpt_portable", "tinygpt_xnnpack", "convnet_xnnpack"])
def test_gap_of_a_right_run_has_no_divergence_in_any_run(name: str) -> None:
    report = gap_of(DATA / "corpus/v1.5.1" / name)
    assert len(report.runs) == 3
    for run in report.runs:
        assert run.first_divergence() is None
        assert max(row.total.max_abs for row in run.rows if row.total) < DAMAGED_BY_THE_RUNTIME


@pytest.mark.parametrize("name", ["lstm_portable", "gru_portable"])
def test_gap_of_operators_that_share_a_handle_compares_all_of_them(name: str) -> None:
    (run,) = gap_of(DATA / "extra" / name, runs=(0,)).runs
    assert all(row.compared for row in run.outside())
    assert sum(row.inferred for row in run.outside()) > 50
    assert max(row.total.max_abs for row in run.outside() if row.total) < DAMAGED_BY_THE_RUNTIME


def test_gap_of_a_loop_compares_every_pass() -> None:
    (run, _) = gap_of(DATA / "extra/map_rows").runs
    assert {row.passes for row in run.outside()} == {1, 3}
    assert all(row.total is not None and row.total.max_abs == 0 for row in run.outside())


def test_gap_of_inputs_the_trace_contradicts_takes_those_of_the_trace() -> None:
    (run, _) = gap_of(DATA / "corpus/special/xnnpack_two_delegates").runs
    assert run.inputs == "arguments of delegates in the trace"
    assert "the trace has it" in run.notes[0]
    assert max(row.total.max_abs for row in run.rows if row.total) < DAMAGED_BY_THE_RUNTIME


def test_gap_of_inputs_only_a_mover_contradicts_blames_no_operator() -> None:
    (run,) = gap_of(DATA / "corpus/special/dynamic").runs
    assert run.first_divergence() is None
    assert any("other inputs" in note for note in run.notes)


def test_report_as_json_is_the_same_report() -> None:
    from inspector.numerics.report import report_from

    report = gap_of(DATA / "extra/kv_cache")
    again = report_from(report.content())
    assert again.content() == report.content()
    assert again.runs[0].rows == report.runs[0].rows


# ---- the documented table
@pytest.fixture(scope="module")
def convnet() -> Any:
    from inspector import Inspector

    folder = DATA / "corpus/v1.5.1/convnet_xnnpack"
    return Inspector(
        etdump_path=folder / "run.etdp",
        etrecord=str(folder / "model.etrecord"),
        debug_buffer_path=folder / "run.debug",
    )


def test_custom_comparator_sees_the_mapping_and_gives_the_gaps(convnet: Any) -> None:
    from inspector import NumericalComparatorBase

    class Largest(NumericalComparatorBase):
        seen = 0

        def preprocessing(self, mapping: Any) -> Any:
            self.seen = len(mapping)
            return dict(list(mapping.items())[:2])

        def element_compare(self, a: Any, b: Any) -> float:
            return float((a - b).abs().max())

    mine = Largest()
    frame = convnet.calculate_numeric_gap(mine)
    assert mine.inspector is convnet
    assert (mine.seen, len(frame)) == (4, 2)
    assert all(0 <= gap[0] < DAMAGED_BY_THE_RUNTIME for gap in frame["gap"])


def test_comparator_with_a_compare_of_its_own_makes_the_table(convnet: Any) -> None:
    from inspector import NumericalComparatorBase

    class Largest(NumericalComparatorBase):
        names: tuple[Any, ...] = ()

        def element_compare(self, a: Any, b: Any) -> float:
            return float((a - b).abs().max())

        def compare(self, mapping: Any, aot: Any, runtime: Any) -> Any:
            self.names = aot, runtime
            return super().compare(mapping, aot, runtime).assign(kind="largest").head(3)

    mine = Largest()
    frame = convnet.calculate_numeric_gap(mine)
    plain = convnet.calculate_numeric_gap("L1")
    assert list(frame["kind"]) == ["largest"] * 3
    for column in ("aot_debug_handle", "aot_ops", "runtime_ops", "stacktraces"):
        assert list(frame[column]) == list(plain[column])[:3], column
    assert all(0 <= gap[0] < DAMAGED_BY_THE_RUNTIME for gap in frame["gap"])
    assert all(isinstance(handles, tuple) for names in mine.names for handles in names)


def test_unknown_distance_is_refused_by_name(convnet: Any) -> None:
    with pytest.raises(ValueError, match="Unsupported distance metric 'RMS'"):
        convnet.calculate_numeric_gap("RMS")


def test_unknown_reference_graph_is_refused_with_those_there_are(convnet: Any) -> None:
    with pytest.raises(ValueError, match="'none/forward' not found; available: 'exported_program'"):
        convnet.calculate_numeric_gap("MSE", reference_graph="none")


def test_gap_without_a_record_is_refused() -> None:
    from inspector import Inspector

    folder = DATA / "corpus/v1.5.1/convnet_xnnpack"
    inspector = Inspector(etdump_path=folder / "run.etdp", debug_buffer_path=folder / "run.debug")
    with pytest.raises(ValueError, match="Missing etrecord"):
        inspector.calculate_numeric_gap("MSE")


@pytest.mark.parametrize("name", ["kv_cache", "two_methods"])
def test_progress_counts_the_nodes_of_all_runs_once(name: str) -> None:
    from inspector.numerics.replay.analysis import analyse_gap

    seen: list[tuple[int, int]] = []
    report = analyse_gap(
        load_session([str(DATA / "extra" / name)]),
        report_progress=lambda done, total: seen.append((done, total)),
    )
    assert len(report.runs) > 1
    done = [one for one, _ in seen]
    assert done == sorted(done)
    assert all(one <= total for one, total in seen)
    assert seen[-1][0] == seen[-1][1] > 1
