"""Golden text of tables; ``python -m tests.inspector.golden_tables`` writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.render.text import lines_of, selected_text
from inspector.tables.query import Query, QueryError, select
from inspector.tables.registry import TABLES, TableSubject, build
from tests.inspector.sessions import DATA

GOLDEN = DATA / "golden"
ROWS = 25
SAMPLES = (
    "corpus/v1.0.1/convnet_portable",
    "corpus/v1.5.1/convnet_xnnpack",
    "corpus/v1.5.1/tinygpt_portable",
    "runs/convnet_portable",
    "runs/convnet_xnnpack",
    "corpus/special/control_flow",
    "corpus/special/xnnpack_int8_static",
    "extra/bundled_cases",
    "extra/external_weights",
)
OF_THE_MACHINE = ("backends",)  # what is installed
LONG = ("structure",)  # thousands of lines
# of traces that no sample has; by a worker, which takes seconds
MADE_BY_TESTS = (
    "kernels",
    "memory-calls",
    *(name for name, entry in TABLES.items() if entry.computed),
)
ESTIMATED = "backends/ethosu_m1_int8"
PAIR = ("runs/convnet_portable", "runs/convnet_xnnpack")


def sample(name: str) -> Session:
    """Return a sample session, its paths relative so that texts do not depend on the machine."""
    return load_session([os.path.relpath(DATA / name)])


def files_for(table: str, folder: str = "corpus/v1.5.1/convnet_xnnpack") -> list[Path]:
    """Return files of which a table of a method has rows."""
    if table.startswith("estimate"):
        return [DATA / f"{ESTIMATED}{suffix}" for suffix in (".pte", ".etrecord")]
    return [DATA / folder]


def text_of(name: str, sessions: tuple[Session, ...]) -> str:
    """Return a table of each method as text, or the reason why there is none."""
    by_method = TABLES[name].subject is TableSubject.METHOD
    methods = sessions[0].methods if by_method else ("",)
    parts: list[str] = []
    for method in methods or ("",):
        title = f"{name}, method {method}" if len(methods) > 1 else name
        try:
            found = select(build(name, sessions, method), Query(top=ROWS))
        except QueryError as error:
            parts.append(f"{title}\n{error}")
        else:
            parts.append("\n".join(lines_of(selected_text(title, found), 0, colour=False)))
    return "\n\n".join(parts) + "\n"


def golden_files() -> dict[Path, tuple[str, tuple[str, ...]]]:
    """Return path -> (table, names of sessions) of everything that has golden text."""
    found: dict[Path, tuple[str, tuple[str, ...]]] = {}
    for table, entry in TABLES.items():
        given = entry.subject is TableSubject.FOLDER or entry.of
        if given or entry.computed or table in (*OF_THE_MACHINE, *LONG):
            continue
        if entry.subject is TableSubject.SESSIONS:
            found[GOLDEN / "compare" / f"{table}.txt"] = (table, PAIR)
            continue
        for name in SAMPLES:
            found[GOLDEN / name.replace("/", "-") / f"{table}.txt"] = (table, (name,))
    return found


def main() -> None:
    """Write all golden text."""
    sessions = {name: sample(name) for name in {*SAMPLES, *PAIR}}
    for path, (table, names) in golden_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(table, tuple(sessions[name] for name in names)), "utf-8")


if __name__ == "__main__":
    main()
