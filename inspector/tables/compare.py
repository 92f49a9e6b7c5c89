"""Content of the compare view: a headline, a summary of deltas, and tables of changes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from inspector.compare.model import (
    LESS,
    MORE,
    ComparePlace,
    Comparison,
    Delta,
)
from inspector.compare.numbers import MEASURED
from inspector.compare.sessions import compare_sessions
from inspector.compare.weighing import BETTER, MANY, UNKNOWN, WORSE, Weighed, weigh
from inspector.files.session import Session
from inspector.memory.measured import resident_alike
from inspector.tables.figures import Figure, figure_column
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import (
    Column,
    Table,
    badge_column,
    text_column,
)
from inspector.units import format_change

_DELEGATES = "delegates"
_LETTERS = 26
_WEIGHED = ("time", "size", "memory", "gap", "work")  # areas of the headline, in its order
_REST = len(_WEIGHED)
_KNOWN = (BETTER, WORSE)
_WAITING = {"latency": "latency being measured", "error": "error being computed"}


@dataclass(frozen=True, slots=True)
class CompareLink:
    """The target of a row.

    Attributes:
        session: letter of the session
        view: name of the view
        selection: the selection there
    """

    session: str
    view: str
    selection: Selection


def link_of(place: ComparePlace | None, letters: Sequence[str]) -> CompareLink | None:
    """Return where a place of a comparison is in the window."""
    if place is None:
        return None
    if place.node:
        chosen = Selection(SelectionKind.NODE, place.method, "compiled", place.node)
    elif place.instruction is not None:
        chosen = Selection(SelectionKind.INSTRUCTION, place.method, instruction=place.instruction)
    elif place.delegate is not None:
        chosen = Selection(SelectionKind.DELEGATE, place.method, delegate=place.delegate)
    elif place.part:
        chosen = Selection(SelectionKind.PART, part=place.part)
    else:
        chosen = Selection()
    return CompareLink(letters[place.session], place.view, chosen)


def headline(found: Comparison, letters: Sequence[str], waiting: Collection[str] = ()) -> str:
    """Return latency, size, memory and error of each session beside the first, and regressions.

    Args:
        found: the comparison
        letters: names of its sessions
        waiting: what is being measured or computed of them: latency, error
    """
    others = letters[1:]
    if not waiting and not any_known(found):
        return f"{', '.join(others)} has nothing to compare with {letters[0]}"
    words = [*_weighed_words(found, letters, waiting), *found.problems]
    if len(others) > 1:
        words += [_WAITING[area] for area in _WAITING if area in waiting]
    return f"{', '.join(others)} against {letters[0]}: {'; '.join(words)}"


def _weighed_words(
    found: Comparison, letters: Sequence[str], waiting: Collection[str]
) -> Iterator[str]:
    """Yield what differs in each variant of the first session; the only one has every quantity."""
    if len(letters) == 2 and not found.unlike:
        weighed = [one for one in weigh(found, 1) if one.area != "work" or one.word in _KNOWN]
        yield ", ".join(
            _WAITING[one.area] if one.word == UNKNOWN and one.area in waiting else one.text
            for one in weighed
        )
        worse = _worse(found)
        more = f" and {len(worse) - 2} more" if len(worse) > 2 else ""
        yield from [f"also worse: {', '.join(worse[:2])}{more}"] if worse else []
        return
    for number, letter in enumerate(letters[1:], 1):
        if len(letters) > 2 and number not in found.unlike:
            yield f"{letter} {_known_words(weigh(found, number))}"


def _known_words(weighed: Sequence[Weighed]) -> str:
    """Return the quantities that differ, or that none is known to."""
    known = [one.text for one in weighed if one.word in _KNOWN]
    return ", ".join(known) or "no difference is known to be real"


def any_known(found: Comparison) -> bool:
    """Return whether any figure is known of the first session and of another one."""
    others = range(1, len(found.names))
    return any(one.difference(each) is not None for one in found.summary for each in others)


def _worse(found: Comparison) -> list[str]:
    by_area: dict[str, str] = {}  # the first of each area: the others say the same once more
    for delta in found.summary:
        if delta.area not in _WEIGHED and tone_of(delta, 1) == "bad":
            by_area.setdefault(delta.area, f"{delta.what} {difference_text(delta, 1)}")
    return list(by_area.values())


def subtitle(found: Comparison, edits: str, runs: str) -> str:
    """Return what was changed and how it was measured, in one line."""
    parts = [f"Changed: {edits}" if edits else "", runs, *found.notes[:2]]
    return " · ".join(part for part in parts if part)


def summary_table(found: Comparison, letters: Sequence[str]) -> Table:
    """Return one row per figure of the summary: sessions, differences, and significance."""
    rows = sorted(found.summary, key=_place)
    others = range(1, len(letters))
    columns = [text_column("figure", [one.what for one in rows], width=26)]
    if len({one.method for one in rows if one.method}) > 1:
        columns.append(text_column("method", [one.method for one in rows]))
    columns += value_columns(rows, letters)
    columns += [difference_column(rows, number, letters) for number in others]
    for number in others:
        title = "certainty" if len(letters) == 2 else f"certainty {letters[number]}"
        columns.append(text_column(title, [_certainty(one, number) for one in rows], width=48))
    columns.append(text_column("area", [one.area for one in rows]))
    keys = [link_of(shown_place(one), letters) for one in rows]
    return Table(tuple(columns), len(rows), keys, noun="numbers")


def _place(one: Delta) -> tuple[bool, int]:
    """Return the place of a figure: what differs in the order of the headline, then the rest."""
    known = one.area in _WEIGHED
    return one.area != "time" and not one.differs, _WEIGHED.index(one.area) if known else _REST


_MEANINGS = {"good": "better", "bad": "worse"}


class Toned(str):
    """A string with a tone: whether a difference is an improvement.

    Attributes:
        tone: good, bad, muted, or empty
    """

    tone: str

    def __new__(cls, text: str, tone: str) -> Toned:
        """Return a text with its tone."""
        built = super().__new__(cls, text)
        built.tone = tone
        return built


def difference_column(rows: Sequence[Delta], number: int, letters: Sequence[str]) -> Column:
    """Return how much a session differs from the first in each row."""
    texts = [_toned(one, number) for one in rows]
    title = f"{letters[number]} − {letters[0]}"
    return badge_column(title, texts, tone=lambda value: getattr(value, "tone", ""))


def _toned(one: Delta, number: int) -> Toned:
    """Return a difference and its meaning as a word, so that colour is not needed."""
    text, tone = difference_text(one, number), tone_of(one, number)
    word = _MEANINGS.get(tone, "")
    return Toned(f"{text} {word}" if text and word else text, tone)


def shown_place(one: Delta) -> ComparePlace | None:
    """Return the place of a figure: in the newest session that has it."""
    return next((place for place in reversed(one.places) if place is not None), None)


def value_columns(rows: Sequence[Delta], letters: Sequence[str]) -> list[Column]:
    """Return the value of each session; those of a row are in one unit."""
    figures = [Figure.row(one.values, one.unit) for one in rows]
    return [
        figure_column(letter, [row[number] for row in figures])
        for number, letter in enumerate(letters)
    ]


def difference_text(one: Delta, number: int) -> str:
    """Return how much a session differs from the first, with a sign; times as a share."""
    old, new = one.values[0], one.values[number]
    difference = one.difference(number)
    if difference is None or old is None or new is None:
        return ""
    if difference == 0:
        return "0"
    if one.unit == "ms" and old:
        verdict = one.verdicts[number] if number < len(one.verdicts) else None
        ratio = verdict.ratio if verdict is not None and verdict.ratio > 0 else new / old
        if ratio >= MANY:
            return f"×{ratio:.1f}"
        return format_change(ratio)
    return Figure(difference, one.unit).signed()


def tone_of(one: Delta, number: int) -> str:
    """Return good or bad for a significant difference, muted for others."""
    difference = one.difference(number)
    if not difference or not one.better or number in one.unlike:
        return "muted"
    if one.what == _DELEGATES and not one.values[0]:
        return "muted"  # the first delegate is no loss
    if one.unit == "ms":
        verdict = one.verdicts[number] if number < len(one.verdicts) else None
        if verdict is None or not verdict.real:
            return "muted"
    if one.what.startswith(MEASURED) and resident_alike(one.values[0] or 0, difference):
        return "muted"
    better = (difference < 0) == (one.better == LESS)
    return "good" if better and one.better in (LESS, MORE) else "bad"


def _certainty(one: Delta, number: int) -> str:
    verdict = one.verdicts[number] if number < len(one.verdicts) else None
    if verdict is not None:
        return verdict.certainty()
    if one.values[number] is None or one.values[0] is None:
        return one.note
    if one.what.startswith(MEASURED):
        return one.note
    if one.unit == "ms":
        return one.note or "runs of other times: no claim"
    return "exact" if not one.note else f"exact · {one.note}"


def letters_of(count: int) -> tuple[str, ...]:
    """Return the letters that sessions side by side are called by: A, B, …, and S27 from there."""
    return tuple(
        chr(ord("A") + number) if number < _LETTERS else f"S{number + 1}" for number in range(count)
    )


def summary(sessions: Sequence[Session], method: str, _units: Units) -> Table:
    """Return one row per figure of the summary: each session and the differences."""
    found = compare_sessions(sessions, method=method)
    return summary_table(found, letters_of(len(sessions)))
