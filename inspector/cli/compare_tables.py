"""The tables of compare: the summary, and what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.cli.answer import Column, Table
from inspector.compare.model import Comparison, Delta, TimeRow
from inspector.compare.words import difference_text, output_name, signed_text, value_text

_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def letter(number: int) -> str:
    """Return the short name of a session: A, B, …, and S27 from there on."""
    return _NAMES[number] if number < len(_NAMES) else f"S{number + 1}"


def summary_table(found: Comparison, *, text: bool) -> Table:
    """Return a row for each number, with differences from the first session.

    Args:
        found: the comparison
        text: numbers in words; else plain, with their unit in a column
    """
    letters = [letter(number) for number in range(len(found.names))]
    heads = ["area", "what", "method", *([] if text else ["unit"]), *letters]
    heads += [f"{name} − A" for name in letters[1:]]
    heads += ["note"] if text else [f"{name} is" for name in letters[1:]] + ["note"]
    rows = [_words(delta) if text else _plain(delta) for delta in found.summary]
    return Table("", tuple(Column(head) for head in heads), rows)


def _words(delta: Delta) -> tuple[Any, ...]:
    others = range(1, len(delta.values))
    return (
        delta.area,
        delta.what,
        delta.method,
        *(value_text(value, delta.unit) for value in delta.values),
        *(difference_text(delta, number) for number in others),
        delta.note,
    )


def _plain(delta: Delta) -> tuple[Any, ...]:
    others = range(1, len(delta.values))
    verdicts = [delta.verdicts[number] if delta.verdicts else None for number in others]
    return (
        delta.area,
        delta.what,
        delta.method,
        delta.unit,
        *delta.values,
        *(delta.difference(number) for number in others),
        *(None if verdict is None else verdict.word for verdict in verdicts),
        delta.note,
    )


def tables(found: Comparison, top: int) -> list[Table]:
    """Return the tables below the summary that have rows, each cut to its first rows."""
    return [
        _cut(table, top)
        for table in (
            _recipes(found),
            _owners(found),
            _partitions(found),
            _graph(found),
            _times("time by operator", found.operators, found),
            _times("time by module", found.modules, found),
            _times("time of nodes, largest difference first", found.nodes, found),
            _deltas("memory", found.memory),
            _deltas("size", [d for d in found.sizes if d.differs]),
            _gaps(found),
            _weights(found),
        )
        if table.rows
    ]


def _cut(table: Table, top: int) -> Table:
    if len(table.rows) <= top:
        return table
    title = f"{table.title} ({top:,} of {len(table.rows):,} rows; --top shows more)"
    return Table(title, table.columns, table.rows[:top])


def _recipes(found: Comparison) -> Table:
    heads = ("", "field", "in A", "there")
    rows = [
        (letter(one.session), one.field, one.old or "—", one.new or "—") for one in found.recipes
    ]
    return Table("recipe", tuple(map(Column, heads)), rows)


def _owners(found: Comparison) -> Table:
    heads = ("", "node", "operator", "module", "from", "to", "reason")
    rows = [
        (
            letter(one.session),
            one.new_node,
            one.operator,
            one.module,
            _owner(one.old_owner, one.old_delegate),
            _owner(one.new_owner, one.new_delegate),
            one.reason,
        )
        for one in sorted(found.owners, key=lambda one: not one.other)
    ]
    return Table("nodes that changed owner", tuple(map(Column, heads)), rows)


def _owner(name: str, delegate: int | None) -> str:
    return name if delegate is None else f"{name} {delegate}"


def _partitions(found: Comparison) -> Table:
    columns = (
        *map(Column, ("", "method", "delegate in A", "delegate", "backend")),
        *(Column(name, "count") for name in ("nodes in A", "nodes", "in both")),
    )
    rows = [
        (
            letter(one.session),
            one.method,
            "new" if one.old is None else str(one.old),
            "gone" if one.new is None else str(one.new),
            one.backend,
            one.old_nodes,
            one.new_nodes,
            one.common,
        )
        for one in found.partitions
    ]
    return Table("partitions", columns, rows)


def _graph(found: Comparison) -> Table:
    rows: list[tuple[str, ...]] = []
    for graphs in found.graphs:
        for number, each in enumerate(graphs.alignments, 1):
            if each is None:
                continue
            who = letter(number)
            for group in each.replaced:
                old = ", ".join(each.old.nodes[node].name for node in group.old)
                new = ", ".join(each.new.nodes[node].name for node in group.new)
                rows.append((who, "replaced", old, new))
            known = {node for group in each.replaced for node in (*group.old, *group.new)}
            gone = [each.old.nodes[node] for node in each.removed if node not in known]
            come = [each.new.nodes[node] for node in each.added if node not in known]
            rows += [(who, "removed", node.name, "") for node in gone]
            rows += [(who, "added", "", node.name) for node in come]
            rows += [
                (
                    who,
                    f"other {one.what}",
                    f"{each.old.nodes[one.pair.old].name}: {one.old}",
                    f"{each.new.nodes[one.pair.new].name}: {one.new}",
                )
                for one in each.changed
            ]
    heads = ("", "what", "in A", "there")
    return Table("graph", tuple(map(Column, heads)), rows)


def _times(title: str, rows: Sequence[TimeRow], found: Comparison) -> Table:
    letters = [letter(number) for number in range(len(found.names))]
    heads = ["name", *letters, *(f"{name} − A" for name in letters[1:]), "where"]
    made = [
        (
            row.name,
            *(value_text(ms, "ms") for ms in row.ms),
            *(signed_text(row.difference(n), "ms") for n in range(1, len(row.ms))),
            " / ".join(each or "—" for each in row.where) if any(row.where) else row.note,
        )
        for row in rows
    ]
    return Table(title, tuple(map(Column, heads)), made)


def _deltas(title: str, deltas: Sequence[Delta]) -> Table:
    count = len(deltas[0].values) if deltas else 2
    letters = [letter(number) for number in range(count)]
    heads = ["what", "method", *letters, *(f"{name} − A" for name in letters[1:])]
    rows = [
        (
            delta.what,
            delta.method,
            *(value_text(value, delta.unit) for value in delta.values),
            *(difference_text(delta, number) for number in range(1, count)),
        )
        for delta in deltas
    ]
    return Table(title, tuple(map(Column, heads)), rows)


def _gaps(found: Comparison) -> Table:
    letters = [letter(number) for number in range(len(found.names))]
    columns = (
        Column("node"),
        Column("operator"),
        *(Column(f"max abs {name}", "number") for name in letters),
        *(Column(f"own {name}", "number") for name in letters),
    )
    rows = [(output_name(row), row.operator, *row.max_abs, *row.own) for row in found.gaps]
    return Table("errors, each held to its own reference", columns, rows)


def _weights(found: Comparison) -> Table:
    columns = (
        *map(Column, ("", "weight", "in A", "there")),
        Column("largest difference", "number"),
        Column("elements that differ", "share"),
    )
    rows = [
        (
            letter(one.session),
            one.name,
            one.old or "—",
            one.new or "—",
            one.largest,
            one.share,
        )
        for one in found.weights
    ]
    return Table("recorded weights that differ", columns, rows)
