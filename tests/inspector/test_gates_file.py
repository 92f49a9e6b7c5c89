"""Gates of a file, on several programs at once, and the trend of their history."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.experiments.gates.gates_file import read_gates, write_gates
from inspector.experiments.gates.offered import offered_metrics
from inspector.experiments.gates.quantities import BoundUnit, short
from inspector.experiments.gates.requirement import OPERATORS, parse_requirement, unit_of
from inspector.experiments.gates.several import MET, NOT_MET, UNKNOWN, GateSide, judge_sides
from inspector.files.load import load_session
from inspector.tables.gates import gate_table, history
from inspector.tables.selection import AUTOMATIC
from schema.errors import FormatError
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA

PORTABLE, XNNPACK = DATA / "runs/convnet_portable", DATA / "runs/convnet_xnnpack"
GATES = ("delegated>=50%", "size<=1x baseline", "gap.max_abs<=1e-3", "eval.snr>=40dB")


def test_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "gates.txt"
    requirements = tuple(map(parse_requirement, GATES))
    write_gates(path, requirements)
    assert read_gates(path) == requirements
    path.write_text("# head\n\n arena <= 4MiB  # mine\n")
    (one,) = read_gates(path)
    assert (one.metric, one.bound) == ("arena", 4 * 2**20)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"arena<=4MiB\narena<=4ms\n", "line 2"),
        (b"# nothing\n", "none"),
        (b"\xff\xfe", "UTF-8"),
    ],
)
def test_damaged_file_is_refused_in_a_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "gates.txt"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=words):
        read_gates(path)


def test_gates_are_judged_for_each_program_as_the_verb_does(tmp_path: Path) -> None:
    sides = [
        GateSide(path.name, load_session([str(path)], strict=True)) for path in (PORTABLE, XNNPACK)
    ]
    found = judge_sides([*map(parse_requirement, GATES)], sides, sides[0])
    assert [one.result for one in found] == [NOT_MET, MET, MET, NOT_MET, *[UNKNOWN] * 4]
    table = gate_table(found)
    assert [table.text(row, 0) for row in range(2)] == [NOT_MET, MET]
    write_gates(tmp_path / "gates.txt", map(parse_requirement, GATES[:1]))
    for path, code in ((PORTABLE, 1), (XNNPACK, 0)):
        answer = run("gate", path, "--gates", tmp_path / "gates.txt", "--format", "json")
        assert answer.code == code
        (one,) = valid(answer, "gate")["data"]["requirements"]
        judged = next(each for each in found if each.side == path.name)
        assert judged.judgement is not None
        assert one["text"] == judged.judgement.value_text()


def test_table_judges_several_sessions_by_the_first(tmp_path: Path) -> None:
    write_gates(tmp_path / "gates.txt", map(parse_requirement, GATES))
    sides = [
        GateSide(path.name, load_session([str(path)], strict=True)) for path in (PORTABLE, XNNPACK)
    ]
    for chosen, baseline in ((sides, sides[0]), (sides[:1], None)):
        judged = judge_sides([*map(parse_requirement, GATES)], chosen, baseline)
        shown = ["table", "gates", *([PORTABLE, XNNPACK][: len(chosen)])]
        answer = run(*shown, "--of", tmp_path / "gates.txt", "--columns", "result,program")
        found = [line.split() for line in answer.out.splitlines()[1:]]
        assert found == [[*one.result.split(), one.side] for one in judged]


def test_what_is_missing_is_unknown_and_named() -> None:
    side = GateSide("A", load_session([str(XNNPACK / "model.pte")], strict=True))
    texts = ("latency<=1ms", "size<=1x baseline", "gap.max_abs<=1", "eval.snr>=1dB")
    found = judge_sides([*map(parse_requirement, texts)], [side])
    words = ("ETDump", "baseline", "not compared", "not evaluated")
    assert [one.result for one in found] == [UNKNOWN] * 4
    assert all(word in one.missing for word, one in zip(words, found, strict=True))


def test_gates_and_requirements_together_are_judged(tmp_path: Path) -> None:
    path = tmp_path / "gates.txt"
    path.write_text("size>0\n")
    answer = run("gate", XNNPACK, "--gates", path, "--require", "delegates>=1", "--format", "json")
    texts = [one["requirement"] for one in valid(answer, "gate")["data"]["requirements"]]
    assert texts == ["size>0", "delegates>=1"]
    path.write_text("size>>0\n")
    assert run("gate", XNNPACK, "--gates", path).code == 3


def test_trend_has_a_row_for_each_metric(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    entries = [
        {"date": "2026-01-01", "program": "m.pte", "sha256": "", "met": met, "failed": failed}
        | {"figures": {"size": size, "latency": 2.0}}
        for size, met, failed in ((1000, True, []), (1100, False, ["size<=1KiB"]))
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in entries))
    rows = run("table", "gate-trend", path, "--format", "tsv").out.splitlines()
    assert rows[1].split("\t")[:4] == ["size", "1.074 KiB", "+10 %", "1"]
    assert rows[2].startswith("latency\t2 ms\t+0 %")
    assert run("table", "gate-trend", tmp_path).code == 2


def test_history_shows_each_figure_with_its_unit(tmp_path: Path) -> None:
    """As the gate itself words it, of every metric that there is, also of another version."""
    values: dict[str, float] = {
        one.metric: number + (3 if unit_of(one.metric) is BoundUnit.COUNT else 3.25)
        for number, one in enumerate(offered_metrics())
    }
    values |= {"eval.accuracy": 0.7, "later.metric": 3.25}
    path = tmp_path / "history.jsonl"
    entry = {"date": "2026-01-01", "program": "m.pte", "sha256": "", "met": False}
    path.write_text(json.dumps({**entry, "figures": values, "failed": ["later.metric<=3"]}) + "\n")
    table = history(path, AUTOMATIC)
    shown = {column.title: f"{column.cell(0)} {column.unit}".strip() for column in table.columns}
    for metric, value in values.items():
        unit = unit_of(metric) if metric != "later.metric" else BoundUnit.NUMBER
        if unit is BoundUnit.COUNT:
            assert shown[metric] == str(int(value))
            continue
        words = short(unit, value).split(" ")
        number = float(shown[metric].split(" ")[0].replace(",", ""))
        assert number == pytest.approx(float(words[0].replace(",", "")), rel=1e-3)
        assert shown[metric].split(" ")[1:] == words[1:], metric
    trend = run("table", "gate-trend", path, "--format", "tsv")
    assert (trend.code, len(trend.out.splitlines())) == (0, 1 + len(values))


def test_offered_metrics_are_those_of_requirements() -> None:
    for one in offered_metrics():
        assert one.sign in OPERATORS
        parse_requirement(f"{one.metric}{one.sign}1x baseline")
