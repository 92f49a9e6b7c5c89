"""The HTML report: whole, well-formed, self-contained, escaped and bounded."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.profile.operator_rows import operator_rows
from inspector.render.html import MOST_BYTES, clean, sentences, time_bar
from inspector.render.report import make_report
from schema import program as programs
from schema.program import model as m
from tests.inspector.cli_runs import LONE, SESSIONS, run
from tests.inspector.sessions import DATA, label, session

pytestmark = pytest.mark.slow

_VOID = {"meta", "br", "rect", "line"}


class _Page(HTMLParser):
    """Fails unless tags are balanced; collects tags and texts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def _page(html: str) -> _Page:
    page = _Page()
    page.feed(html)
    page.close()
    assert page.open == []
    return page


@pytest.mark.parametrize("path", [*SESSIONS, *LONE], ids=label)
def test_report_is_one_sound_document(path: Path) -> None:
    loaded = session(path)
    report = make_report(loaded, loaded.methods)
    assert report.left_out == ()
    assert len(report.html.encode()) < MOST_BYTES
    page = _page(report.html)
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert not {"src", "href", "onclick", "onload"} & {name for name, _ in page.attributes}
    assert "url(" not in report.html
    assert "http" not in report.html
    assert "prefers-color-scheme:dark" in report.html
    assert "Summary" in report.sections
    assert ("Memory" in report.sections) == (loaded.program is not None and _planned(loaded))
    assert ("Operators by time" in report.sections) == any(
        operator_rows(loaded, method) for method in loaded.methods or ("",)
    )


def _planned(loaded: Session) -> bool:
    assert loaded.program is not None
    return any(len(plan.non_const_buffer_sizes) > 1 for plan in loaded.program.plans)


def test_time_bar_adds_up() -> None:
    bar = time_bar((("a", "bar", 1.0), ("b", "bar", 2.0), ("rest", "rest", 5.0)))
    widths = [float(found) for found in re.findall(r"width:([\d.]+)%", bar)]
    assert sum(widths) == pytest.approx(100.0, abs=0.01)
    assert time_bar((("a", "bar", 0.0),)) == ""


@pytest.mark.parametrize("parts", [(0.4235, 0.08399, 0.009235), (12.0, 0.0, 0.0004)])
def test_time_bar_has_one_unit_and_no_part_that_is_not_there(parts: tuple[float, ...]) -> None:
    bar = time_bar([(f"part {number}", "bar", ms) for number, ms in enumerate(parts)])
    shown = re.findall(r"(<?[\d.,]+) (ns|µs|ms|s)\b", bar)
    assert {unit for _, unit in shown} == {"ms"}
    assert len(shown) == 2 * sum(ms > 0 for ms in parts)  # in the bar and in its legend


def test_names_from_files_are_escaped_and_cut() -> None:
    shown = sentences([('<script>"&\x1b[31m\n', "bad", "")])
    assert "&lt;script&gt;&#34;&amp; [31m " in shown
    assert len(clean("x" * 10_000)) <= 160
    assert clean(None) == ""


def test_hostile_names_and_many_values_stay_inside_the_bounds() -> None:
    program = session(DATA / "extra/lstm_portable").program
    assert program is not None
    plan = program.plans[0]
    evil = '<img src=x onerror=alert(1)>" ' + "y" * 5000
    values = tuple(_named(value, f"{evil}{index}") for index, value in enumerate(plan.values))
    plans = tuple(replace(plan, name=f"{evil}{index}", values=values * 4) for index in range(14))
    table = replace(program.table, execution_plan=plans)
    data = memoryview(programs.encode(replace(program, table=table)))
    decoded = programs.decode(data)
    loaded = session(DATA / "extra/lstm_portable")
    pte = next(file for file in loaded.files if file.kind == "pte")
    hostile = Session(evil, (replace(pte, data=data, artifact=decoded, path=evil),))
    report = make_report(hostile, hostile.methods)
    assert len(report.html.encode()) < MOST_BYTES
    assert "img" not in _page(report.html).tags
    assert "left out" in report.html


def _named(value: m.EValue, name: str) -> m.EValue:
    tensor = value.val
    if not isinstance(tensor, m.Tensor):
        return value
    extra = m.ExtraTensorInfo(0, name, 0, 0, 0)
    return m.EValue(replace(tensor, extra_tensor_info=extra))


def test_report_goes_to_a_file_or_to_standard_output(tmp_path: Path) -> None:
    folder = DATA / "corpus/v1.5.1/convnet_xnnpack"
    target = tmp_path / "report.html"
    answer = run("report", folder, "-o", target)
    assert (answer.code, answer.out) == (0, "")
    assert target.read_text("utf-8") == run("report", folder).out
    assert run("report", folder, "-o", target).code == 2
    assert run("report", folder, "-o", target, "--force").code == 0


def test_lone_trace_has_no_sections_of_other_files() -> None:
    loaded = load_session([DATA / "extra/kv_cache/run.etdp"])
    report = make_report(loaded, loaded.methods)
    assert "Memory" not in report.sections
    assert "Delegation" not in report.sections
    assert "Where the time went" in report.sections


def test_report_names_files_without_their_folders() -> None:
    session = load_session([DATA / "corpus" / "v1.5.1" / "tinygpt_xnnpack"])
    html = make_report(session, session.methods).html
    assert str(DATA) not in html
    assert "model.etrecord" in html


def test_report_ranks_parts_of_runs_with_their_source_and_no_event_twice() -> None:
    session = load_session([DATA / "corpus" / "v1.5.1" / "tinygpt_xnnpack"])
    html = make_report(session, session.methods).html
    ranked = html.split("Operators by time")[1].split("</section>")[0]
    for whole in ("OPERATOR_CALL", "Method::execute", "Program::load_method"):
        assert whole not in ranked
    times = [float(one) for one in re.findall(r">(?:&lt;)?([\d.]+) %", ranked)]
    assert times == sorted(times, reverse=True)
    assert "aten.native_layer_norm.out" in ranked
    assert "b.0.ln1" in ranked
    assert "zoo/models.py:23" in ranked


def test_report_says_who_uses_the_largest_blob() -> None:
    session = load_session([DATA / "corpus" / "v1.5.1" / "tinygpt_xnnpack"])
    html = make_report(session, session.methods).html
    assert "delegate 5 FullyConnected_0 filter in b.0.m1" in html.split("<h2>Size</h2>")[1]
