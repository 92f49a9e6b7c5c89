"""What the compare view says of two and more sessions: headline, tones, lists, links, colours."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields, replace
from pathlib import Path

import pytest

from devtools_app.appearance.colours import PLAIN
from devtools_app.state.state import OpenSession
from devtools_app.viewmodels.change_colours import (
    LEFT,
    TAKEN,
    NodeChanges,
    change_overlay,
    node_changes,
)
from devtools_app.viewmodels.scene import graph_scene
from inspector.compare.model import LESS, MORE, ComparePlace, Comparison, Delta, TimeRow
from inspector.compare.sessions import compare_sessions
from inspector.compare.statistics import ALIKE, FASTER, SLOWER, TimeVerdict
from inspector.compare.weighing import weigh
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.profile.operator_columns import TRACING
from inspector.tables.compare import (
    CompareLink,
    difference_text,
    headline,
    link_of,
    subtitle,
    summary_table,
    tone_of,
    value_columns,
)
from inspector.tables.compare_lists import LISTS, MEMORY, SIZES, TIMES, detail_table, time_bars
from inspector.tables.selection import SelectionKind
from inspector.units import MINUS

pytestmark = pytest.mark.slow
CORPUS = Path(__file__).parents[1] / "data" / "corpus" / "v1.5.1"


@pytest.fixture(scope="module")
def sessions() -> tuple[Session, ...]:
    names = ("convnet_portable", "convnet_xnnpack", "mm_xnnpack")
    return tuple(load_session([CORPUS / name]) for name in names)


@pytest.fixture(scope="module")
def two(sessions: tuple[Session, ...]) -> Comparison:
    return compare_sessions(sessions[:2])


def verdict(word: str, ratio: float) -> TimeVerdict:
    return TimeVerdict(ratio, ratio * 0.9, ratio * 1.1, word, 1.0, ratio, 12)


def times(word: str, ratio: float) -> Delta:
    return Delta("time", "latency", "ms", (1.0, ratio), LESS, "", (None, verdict(word, ratio)))


def unmeasured() -> Delta:
    nothing = TimeVerdict(math.nan, 0.0, math.inf, ALIKE, math.nan, math.nan, 0)
    return Delta("time", "latency", "ms", (math.nan, math.nan), LESS, "", (None, nothing))


def comparison(*summary: Delta) -> Comparison:
    """Return a comparison that found these numbers and nothing else."""
    nothing = {one.name: () for one in fields(Comparison)}
    return Comparison(**{**nothing, "names": ("one", "two"), "summary": summary})


WORSE = Delta("memory", "peak", "bytes", (1024, 3072), LESS)
BETTER = Delta("size", ".pte file", "bytes", (4096, 3072), LESS)
LOST = Delta("delegation", "delegated", "share", (0.9, 0.865), MORE)
WRONG = Delta("gap", "largest error", "", (6e-8, 0.112), LESS)
RECORDED = Delta("time", "recorded runs", "ms", (2.0, 1.0), LESS)


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        (
            (times(FASTER, 0.8), BETTER),
            "20 % faster, size 25 % smaller (−1 KiB), peak memory unk",
        ),
        (
            (times(SLOWER, 1.3), WORSE),
            "30 % slower, size unknown, peak memory 3.0 times more (+2 K",
        ),
        (
            (times(SLOWER, 7.8),),
            "7.8 times slower, size unknown, peak memory unknown, error not comp",
        ),
        ((times(FASTER, 0.25),), "4.0 times faster"),
        ((times(ALIKE, 1.1),), "latency not distinguishable"),
        ((unmeasured(), BETTER), "latency not measured, size 25 % smaller"),
        ((RECORDED,), "latency not measured together"),
        (
            (BETTER, LOST),
            "latency not measured, size 25 % smaller (−1 KiB), peak memory unknown,"
            " error not computed; also worse: delegated −3.5 points",
        ),
        (
            (BETTER, WRONG),
            "latency not measured, size 25 % smaller (−1 KiB), peak memory unknown,"
            " largest error 0.112, before 6e-08",
        ),
        (
            (replace(BETTER, values=(9, 9)), replace(WRONG, values=(0.5, 0.51))),
            "latency not measured, same size, peak memory unknown, same largest error 0.51",
        ),
    ],
)
def test_headline_says_what_is_real_and_what_got_worse(summary, words: str) -> None:
    assert headline(comparison(*summary), ("A", "B")).startswith(f"B against A: {words}")


@pytest.mark.parametrize("values", [None, (None, 9)])
def test_sessions_without_a_common_figure_are_not_praised(values) -> None:
    summary = [] if values is None else [replace(BETTER, values=values)]
    assert headline(comparison(*summary), ("A", "B")) == "B has nothing to compare with A"


def test_words_of_each_quantity_are_better_worse_or_neither() -> None:
    found = comparison(times(FASTER, 0.8), BETTER, WORSE, WRONG)
    assert [(one.area, one.word) for one in weigh(found, 1)] == [
        ("latency", "better"),
        ("size", "better"),
        ("memory", "worse"),
        ("error", "worse"),
        ("work", "unknown"),
    ]
    assert {one.word for one in weigh(comparison(), 1)} == {"unknown"}


def test_other_programs_and_files_that_do_not_belong_together_are_no_improvement(
    sessions: tuple[Session, ...],
) -> None:
    found = compare_sessions([sessions[0], sessions[2]])
    assert "are different programs" in headline(found, ("A", "B"))
    mixed = load_session([CORPUS / "mm_portable/model.pte", CORPUS / "convnet_portable/run.etdp"])
    found = compare_sessions([sessions[0], mixed])
    assert any("do not belong together" in problem for problem in found.problems)
    assert compare_sessions(sessions[:2]).problems == ()


def _tones(found: Comparison, letters: tuple[str, ...], number: int) -> set[str]:
    """Return all that the tables and bars say of the differences of a session."""
    title = f"{letters[number]} − {letters[0]}"
    tables = [summary_table(found, letters)]
    tables += [detail_table(found, kind, letters) for kind in (MEMORY, SIZES)]
    columns = [one for table in tables for one in table.columns if one.title == title]
    assert len(columns) == len(tables)
    said = {column.tone(value) for column in columns for value in column.values if column.tone}
    words = {str(value).rpartition(" ")[2] for column in columns for value in column.values}
    return {"good", "bad", "better", "worse"} & (said | words)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_no_figure_of_another_program_is_better_or_worse(
    sessions: tuple[Session, ...], order: tuple[int, ...]
) -> None:
    """The third program is another one than the first two, wherever it stands."""
    letters = ("A", "B", "C")
    found = compare_sessions([sessions[number] for number in order])
    alike = [number for number in (1, 2) if {order[0], order[number]} == {0, 1}]
    assert found.unlike == {1, 2} - set(alike)
    for number in (1, 2):
        claimed = {one.word for one in weigh(found, number)} & {"better", "worse"}
        assert bool(_tones(found, letters, number)) == (number in alike) == bool(claimed)
    text = headline(found, letters)
    assert "are different programs" in text
    parts = text.partition(": ")[2].split("; ")
    named = [n for n in (1, 2) if any(one.startswith(f"{letters[n]} ") for one in parts[:1])]
    assert named == alike
    measured = replace(found, summary=(times(FASTER, 0.5), *found.summary))
    bars = time_bars(measured, "operators", letters)
    assert {tone for *_, tone in bars} <= (
        {"muted"} if 1 in found.unlike else {"good", "bad", "muted"}
    )


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_programs_without_graphs_to_compare_are_told_apart_by_their_inputs(
    sessions: tuple[Session, ...], order: tuple[int, ...]
) -> None:
    names = ("convnet_portable", "convnet_xnnpack", "mm_xnnpack")
    alone = [load_session([CORPUS / name / "model.pte"]) for name in names]
    mixed = [sessions[0], *alone[1:]]  # a record on one side only
    for given in (alone, mixed):
        found = compare_sessions([given[number] for number in order])
        alike = [number for number in (1, 2) if {order[0], order[number]} == {0, 1}]
        assert found.unlike == {1, 2} - set(alike), found.problems
        for number in found.unlike:
            assert _tones(found, ("A", "B", "C"), number) == set()


def test_figures_of_files_that_do_not_belong_together_are_not_judged(
    sessions: tuple[Session, ...],
) -> None:
    mixed = load_session([CORPUS / "mm_portable/model.pte", CORPUS / "convnet_portable/run.etdp"])
    for pair in ([sessions[0], mixed], [mixed, sessions[0]], [mixed, mixed]):
        found = compare_sessions(pair)
        assert found.unlike == {1}
        assert _tones(found, ("A", "B"), 1) == set()
        assert {one.word for one in weigh(found, 1)} == {"unknown"}


def test_what_is_being_measured_is_not_called_unmeasured() -> None:
    found = comparison(unmeasured(), BETTER)
    waiting = headline(found, ("A", "B"), {"latency", "error"})
    assert waiting.startswith("B against A: latency being measured, size 25 % smaller")
    assert waiting.endswith("error being computed")
    known = comparison(times(FASTER, 0.8), WRONG)
    assert "being" not in headline(known, ("A", "B"), {"latency", "error"})  # of the last time
    none = headline(comparison(), ("A", "B"), {"latency"})
    assert none.startswith("B against A: latency being measured")
    three = replace(found, names=("one", "two", "three"), summary=())
    assert headline(three, ("A", "B", "C"), {"error"}).endswith("; error being computed")


def _shown_number(text: str) -> float:
    return float(text.partition(" ")[0].replace(",", "").replace(MINUS, "-"))


@pytest.mark.parametrize("old", [2.3e-4, 0.2979, 0.386, 0.9996, 42.94, 1234.5, 61_000.0])
@pytest.mark.parametrize("ratio", [0.26, 0.703, 0.9995, 1.0, 1.021, 1.297, 1.82, 1.99])
def test_the_percentage_is_the_difference_of_the_columns(old: float, ratio: float) -> None:
    word = ALIKE if abs(ratio - 1) < 0.02 else FASTER if ratio < 1 else SLOWER
    both = (old, old * ratio)
    row = Delta("time", "latency", "ms", both, LESS, "", (None, verdict(word, ratio)))
    for one in (row, replace(row, verdicts=())):
        table = summary_table(comparison(one), ("A", "B"))
        titles = [column.title for column in table.columns]
        shown = [table.text(0, titles.index(letter)) for letter in ("A", "B")]
        assert len({text.split(" ")[1] for text in shown}) == 1  # one unit in a row
        before, after = map(_shown_number, shown)
        change = table.text(0, titles.index("B − A"))
        share = 0.0 if change.startswith("<") else _shown_number(change)
        assert share / 100 == pytest.approx(after / before - 1, abs=2e-3)
    if word != ALIKE and 0.5 < ratio < 2:
        said = weigh(comparison(row), 1)[0].text
        assert _shown_number(said) / 100 == pytest.approx(abs(both[1] / both[0] - 1), abs=6e-4)


@pytest.mark.parametrize(
    ("delta", "text", "tone"),
    [
        (WORSE, "+2 KiB", "bad"),
        (BETTER, "−1 KiB", "good"),
        (Delta("delegation", "delegated", "share", (0.5, 0.75), MORE), "+25.0 points", "good"),
        (Delta("delegation", "nodes", "", (3, 5)), "+2", "muted"),
        (Delta("delegation", "nodes", "", (3, 3), MORE), "0", "muted"),
        (Delta("memory", "arenas", "bytes", (None, 3), LESS), "", "muted"),
        (Delta("time", "runs", "ms", (1.0, 3.0), LESS), "×3.0", "muted"),
        (times(SLOWER, 1.5), "+50 %", "bad"),
        (times(ALIKE, 1.5), "+50 %", "muted"),
        (times(FASTER, 0.5), "−50 %", "good"),
    ],
)
def test_difference_has_a_unit_and_a_tone_only_where_something_is_claimed(
    delta: Delta, text: str, tone: str
) -> None:
    assert difference_text(delta, 1) == text
    assert tone_of(delta, 1) == tone
    table = summary_table(comparison(delta), ("A", "B"))
    difference = next(one for one in table.columns if one.title == "B − A")
    word = {"good": " better", "bad": " worse"}.get(tone, "")  # not by colour alone
    assert str(difference.values[0]) == text + word
    assert difference.tone(difference.values[0]) == tone


def test_missing_values_are_said_and_not_zero() -> None:
    (shown,) = value_columns([replace(WORSE, values=(None, 1))], ("A",))
    assert shown.text(shown.values[0]) == "missing"
    assert subtitle(comparison(), "", "") == ""
    assert subtitle(comparison(), "deny nodes + a", "12 blocks") == (
        "Changed: deny nodes + a · 12 blocks"
    )


def test_portable_and_delegated_program_differ_in_owners_and_partitions(two: Comparison) -> None:
    letters = ("A", "B")
    for kind, _ in LISTS:
        table = detail_table(two, kind, letters)
        assert all(len(column.values) == table.length for column in table.columns)
        for row in range(table.length):
            assert all(table.text(row, column) is not None for column in range(len(table.columns)))
    owners = detail_table(two, "owners", letters)
    assert owners.length > 0
    assert set(owners.columns[1].values) == {"portable"}
    key = owners.key(0)
    assert isinstance(key, CompareLink)
    assert (key.session, key.view, key.selection.kind) == ("B", "graph", SelectionKind.NODE)
    partitions = detail_table(two, "partitions", letters)
    assert set(partitions.columns[0].values) == {"new"}
    text = headline(two, letters)
    assert text.startswith("B against A")


def test_times_of_a_list_share_one_unit_and_bars_are_in_order(two: Comparison) -> None:
    for kind in TIMES:
        table = detail_table(two, kind, ("A", "B"))
        assert len({column.unit for column in table.columns if column.unit}) <= 1
        bars = time_bars(two, kind, ("A", "B"))
        sizes = [abs(value) for _, value, _, _ in bars]
        assert sizes == sorted(sizes, reverse=True)
        assert all((text[0] == "+") == (value > 0) for _, value, text, _ in bars)


def test_bars_share_one_unit(two: Comparison) -> None:
    pairs = {"aten.add.out": (1.0, 0.5), "aten.mul.out": (0.01, 0.0101)}
    rows = tuple(TimeRow("forward", name, pair, (1, 1)) for name, pair in pairs.items())
    bars = time_bars(replace(two, operators=rows), "operators", ("A", "B"))
    assert [text for _, _, text, _ in bars] == ["−0.500 ms", "+0.000100 ms"]


def test_cost_of_tracing_is_no_gain_of_the_program(two: Comparison) -> None:
    rows = tuple(TimeRow("forward", name, (1.0, 0.5), (1, 1)) for name in ("aten.add.out", TRACING))
    found = replace(two, summary=(times(FASTER, 0.5),), operators=rows)
    tones = {name: tone for name, _, _, tone in time_bars(found, "operators", ("A", "B"))}
    assert tones == {"aten.add.out": "good", TRACING: "muted"}


@pytest.mark.parametrize("summary", [(), (RECORDED,), (unmeasured(),), (times(ALIKE, 0.5),)])
def test_bars_of_recorded_runs_claim_nothing_without_a_verdict(
    two: Comparison, summary: tuple[Delta, ...]
) -> None:
    rows = (TimeRow("forward", "aten.add.out", (1.0, 0.5), (1, 1)),)
    bars = time_bars(replace(two, summary=summary, operators=rows), "operators", ("A", "B"))
    assert [(value, tone) for _, value, _, tone in bars] == [(-500_000.0, "muted")]


def test_three_sessions_have_a_column_each(sessions: tuple[Session, ...]) -> None:
    found = compare_sessions(sessions)
    letters = ("A", "B", "C")
    table = summary_table(found, letters)
    titles = [column.title for column in table.columns]
    assert titles[titles.index("A") :][:5] == ["A", "B", "C", "B − A", "C − A"]
    assert headline(found, letters).startswith("B, C against A: ")
    for kind, _ in LISTS:
        assert detail_table(found, kind, letters) is not None


@pytest.mark.parametrize(
    "place",
    [
        ComparePlace(1, "graph", "forward", node="a"),
        ComparePlace(0, "timeline", "forward", instruction=3),
        ComparePlace(1, "partitions", "forward", delegate=0),
        ComparePlace(1, "size", part="named data"),
        ComparePlace(0, "overview"),
    ],
)
def test_places_are_links_to_sessions(place: ComparePlace) -> None:
    found = link_of(place, ("A", "B"))
    assert found is not None
    assert (found.session, found.view) == ("AB"[place.session], place.view)
    assert link_of(None, ("A", "B")) is None


def test_colours_of_changes_tell_who_took_what(sessions: tuple[Session, ...]) -> None:
    portable, delegated = sessions[:2]
    method = delegated.methods[0]
    found = node_changes(delegated, OpenSession("A", portable), method)
    assert found.against == "A"
    assert TAKEN in set(found.fates.values())
    assert LEFT not in set(found.fates.values())
    back = node_changes(portable, OpenSession("B", delegated), method)
    assert LEFT in set(back.fates.values())
    made = graph_scene(delegated, method, "compiled")
    assert made is not None
    overlay = change_overlay(made, found, ())
    assert overlay.nodes == len(made.scene.names)
    assert set(overlay.categories.tolist()) == {PLAIN, *found.fates.values()}
    assert "delegated, not in A" in [entry.label for entry in overlay.legend]
    same = node_changes(delegated, OpenSession("A", delegated), method)
    assert dict(same.fates) == {}
    nothing = change_overlay(made, NodeChanges(), ())
    assert nothing.categories is None
    assert "nothing to compare with" in nothing.legend[-1].label


def test_first_delegate_is_no_loss() -> None:
    first, more = (
        Delta("delegation", "delegates", "", counts, LESS) for counts in ((0, 1), (1, 2))
    )
    assert tone_of(first, 1) == "muted"
    assert tone_of(more, 1) == "bad"
