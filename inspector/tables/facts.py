"""A short sheet of facts: titled groups of label and value, as the Node panel shows them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

_MOST = 12  # lines of one group; the rest is counted


@dataclass(frozen=True, slots=True)
class Fact:
    """One line.

    Attributes:
        label: name of the fact
        value: as shown
        exact: unrounded, on hover; empty if value is exact
        badge: certainty or source of the value: exact, inferred, measured
        badge_tone: colour role of the badge
        link: target of the value, returned by the sheet, None for plain text
    """

    label: str
    value: str
    exact: str = ""
    badge: str = ""
    badge_tone: str = ""
    link: Hashable | None = None


@dataclass(frozen=True, slots=True)
class FactGroup:
    """Facts that belong together.

    Attributes:
        title: quiet heading, may be empty
        facts: the lines
        notice: heading of a box above the lines, may be empty
        text: content of that box
        code: source lines below, may be empty
        first_line: number of the first of them
        marked: number of the line meant
    """

    title: str
    facts: tuple[Fact, ...] = ()
    notice: str = ""
    text: str = ""
    code: tuple[str, ...] = ()
    first_line: int = 1
    marked: int = 0


@dataclass(frozen=True, slots=True)
class FactSheet:
    """All facts of one thing.

    Attributes:
        title: its name
        subtitle: its place
        groups: of facts, most important first
    """

    title: str = ""
    subtitle: str = ""
    groups: tuple[FactGroup, ...] = ()

    def as_text(self) -> str:
        """Return the sheet as tab-separated lines for the clipboard."""
        lines = [self.title, self.subtitle] if self.subtitle else [self.title]
        for group in self.groups:
            lines.append("")
            lines += [line for line in (group.title, group.notice, group.text) if line]
            lines += [f"{fact.label}\t{fact.exact or fact.value}" for fact in group.facts]
            lines += group.code
        return "\n".join(lines)


def shortened(title: str, facts: Iterable[Fact]) -> FactGroup:
    """Return a group of the first facts; the others are counted."""
    listed = tuple(facts)
    if len(listed) > _MOST:
        rest = len(listed) - _MOST + 1
        listed = (*listed[: _MOST - 1], Fact("", f"and {rest:,} more"))
    return FactGroup(title, listed)
