"""The whole product on damaged files: every verb and every view-model, alone and in company."""

from __future__ import annotations

import json
import random
import re
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from devtools_app.viewmodels.goto import goto_choices
from devtools_app.viewmodels.node_facts import node_facts
from devtools_app.viewmodels.overview import missing, overview, verdict
from devtools_app.viewmodels.scene import graph_scene
from devtools_app.viewmodels.size_map import find_duplicates, size_map
from devtools_app.viewmodels.status import status_facts
from devtools_app.viewmodels.timeline import aligned_runs
from devtools_app.viewmodels.timeline_flame import flame_timeline
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.graph.model_graph import graph_names
from inspector.profile.timeline_runs import timeline_runs
from inspector.structure.files import structure
from inspector.structure.node import StructureNode
from inspector.tables.events import all_events
from inspector.tables.files import all_issues, file_table
from inspector.tables.memory import memory_plan
from inspector.tables.operators import operators_table
from inspector.tables.partitions import partitions
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.source_lines import source_files
from schema.errors import FormatError
from schema.objects import identity_cache
from tests.fuzz.memory import Peak, bound_mib
from tests.fuzz.run import DAMAGES, DATA, SECONDS, corpus, damage_of, time_limit
from tests.inspector.cli_runs import READING, loaded_once, run, valid

VERBS = (*READING, "extract")
ALLOWED = (0, 1, 3)
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_LINES, _SELECTED = 400, 40


def check_case(number: int, seed: int) -> list[str]:
    """Damage one file of the corpus and use the product on it; returns what went wrong."""
    rng = random.Random(f"{seed} {number}")
    path = rng.choice(damaged_files())
    seed_of_damage = rng.randrange(1 << 40)
    company = company_of(path) if rng.random() <= 1 / 3 else []
    return check_mutant(path, seed_of_damage, company, damage_of(rng))


def check_mutant(path: Path, seed: int, company: list[Path], damage: str = "bytes") -> list[str]:
    """Damage a file as the seed says and use the product on it, in company for the verbs."""
    name, data = DAMAGES[damage](path.read_bytes(), seed)
    label = f"{path.relative_to(DATA)} {damage} seed {seed} ({name}, {len(company)} beside it)"
    with tempfile.TemporaryDirectory() as folder:
        damaged = Path(folder) / path.name
        damaged.write_bytes(data)
        files = [damaged, *company]
        peak = Peak()
        wrong = [*_verbs(files), *_views(damaged)]
        taken, bound = peak.mib(), bound_mib(sum(file.stat().st_size for file in files))
        if taken > bound:
            wrong.append(f"took {taken:.0f} MiB, of {bound:.0f} that it may")
    return [f"{label}: {found}" for found in wrong]


def damaged_files() -> list[Path]:
    """Return the files that are damaged; debug buffers too, which mean something in company."""
    return sorted([*corpus(), *DATA.rglob("*.debug")])


def company_of(path: Path) -> list[Path]:
    """Return undamaged files of the same folder."""
    return [other for other in corpus() if other.parent == path.parent and other != path][:3]


def _verbs(files: list[Path]) -> list[str]:
    wrong: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        loaded_once(patch)
        for verb in VERBS:
            found = _timed(lambda verb=verb: _answer(verb, files))
            if found:
                wrong.append(f"etscope {verb}: {found}")
    identity_cache.clear()
    return wrong


def _answer(verb: str, files: list[Path]) -> str:
    answer = run(verb, *files, "--format", "json")
    if answer.code not in ALLOWED:
        return f"exit {answer.code}: {answer.err.strip()[-300:]}"
    if _CONTROLS.search(answer.out) or _CONTROLS.search(answer.err):
        return "control characters in the output"
    if "Traceback" in answer.err:
        return answer.err[-600:]
    if answer.code == 3 and not json.loads(answer.out)["error"]:
        return "exit 3 without an error"
    if answer.code != 3 or json.loads(answer.out)["data"]:
        valid(answer, verb)
    return ""


def _timed(act: Callable[[], str]) -> str:
    """Return what is wrong; every escape and everything slow is."""
    start = time.process_time()
    try:
        with time_limit(2 * SECONDS):
            found = act()
    except Exception as error:  # noqa: BLE001 - every escape is a finding
        trace, places = error.__traceback__, []
        while trace is not None:
            places.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
            trace = trace.tb_next
        return f"{type(error).__name__}: {str(error)[:300]} at {' '.join(places[-4:])}"
    slow = time.process_time() - start
    return found or (f"took {slow:.1f} s" if slow > SECONDS else "")


def _views(damaged: Path) -> list[str]:
    try:
        session = load_session([damaged])
    except FormatError:
        return []
    method = session.methods[0] if session.methods else ""
    wrong = [(name, _timed(lambda act=act: _viewed(act))) for name, act in _acts(session, method)]
    identity_cache.clear()
    return [f"view {name}: {found}" for name, found in wrong if found]


def _viewed(act: Callable[[], object]) -> str:
    with suppress(FormatError):  # a view shows its sentence
        act()
    return ""


def _acts(session: Session, method: str) -> list[tuple[str, Callable[[], object]]]:
    units = Units()
    return [
        ("overview", lambda: overview(session, method, units)),
        ("verdict", lambda: (verdict(session), missing(session))),
        ("files", lambda: (file_table(session), all_issues(session))),
        ("events", lambda: all_events(session, method, units).table.length),
        ("operators", lambda: operators_table(session, method, units)),
        ("memory", lambda: memory_plan(session, method)),
        ("size", lambda: find_duplicates(size_map(session))),
        ("partitions", lambda: partitions(session, method)),
        ("sources", lambda: source_files(session, method, units)),
        ("status", lambda: status_facts(session, method)),
        ("go to", lambda: goto_choices(session, method)),
        ("timeline", lambda: aligned_runs(session, timeline_runs(session, method))),
        ("flame", lambda: flame_timeline(session, method)),
        ("graphs", lambda: _graphs(session, method)),
        ("structure", lambda: _opened(structure(session))),
        ("node panel", lambda: _selected(session, method)),
    ]


def _graphs(session: Session, method: str) -> None:
    for name in graph_names(session, method):
        with suppress(FormatError):
            graph_scene(session, method, name)


def _opened(nodes: tuple[StructureNode, ...]) -> int:
    """Open lines of the structure breadth first, as many as a user would."""
    waiting = list(nodes)
    for index in range(_LINES):
        if index >= len(waiting):
            break
        waiting += waiting[index].children()[:20]
    return len(waiting)


def _selected(session: Session, method: str) -> None:
    for index in range(_SELECTED):
        for chosen in (
            Selection(SelectionKind.INSTRUCTION, method, instruction=index),
            Selection(SelectionKind.EVENT, method, event=index),
            Selection(SelectionKind.VALUE, method, value=index),
            Selection(SelectionKind.DELEGATE, method, delegate=index),
        ):
            with suppress(FormatError):
                node_facts(session, method, chosen, Units())
