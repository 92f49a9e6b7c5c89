"""The input of the Run panel, remembered between uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from devtools_app.state.json_file import read_parts
from devtools_app.state.trusted_code import is_agreed
from schema.backends import backend_of

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.files.session import Session
    from inspector.jobs.executing import RunJob

MADE = ("random", "ones", "zeros")
FILE, CASE, SEQUENCE = "file", "case", "sequence"
EXECUTORCH = "executorch"
LEVELS = ("none", "outputs", "intermediate")
ENGINES = ("auto", "native", "torch")
AUTO_RUNS, AUTO_WARMUP = 0, -1
SWEEP_THREADS, AUTO_THREADS = -1, 0
MOST_RUNS, MOST_THREADS, MOST_SEED = 100_000, 256, 999_999_999
_REPORT = "run.json"
_CHOICES = {
    "inputs": (*MADE, FILE, SEQUENCE),
    "level": LEVELS,
    "engine": ENGINES,
    "toolchain": ("", EXECUTORCH),
}
_LIMITS = {
    "runs": (AUTO_RUNS, MOST_RUNS),
    "warmup": (AUTO_WARMUP, MOST_RUNS),
    "threads": (AUTO_THREADS, MOST_THREADS),
    "seed": (0, MOST_SEED),
}


@dataclass(frozen=True, slots=True)
class Runnable:
    """The runnable program of a session.

    Attributes:
        session: its id
        program: path of the ``.pte`` or ``.bpte``
        record: path of the ETRecord, empty without one
        data_files: ``.ptd`` files
        methods: in the order of the program
        cases: how many bundled cases each method has
        bundled: whether the program is a bundled one
        others: files of the session except traces
        traces: traces of the session
        engines: whether a backend of the program has several engines
        foreign: operators of the program that are neither torch's nor ExecuTorch's, sorted
        code: files that registered them when the program was compiled
        device: that its traces come from, empty for this machine
        options_of: backends of the program that have options of a run, by their short names
    """

    session: str
    program: str
    record: str = ""
    data_files: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    cases: tuple[tuple[str, int], ...] = ()
    bundled: bool = False
    others: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    engines: bool = False
    foreign: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    device: str = ""
    options_of: tuple[str, ...] = ()

    def cases_of(self, method: str) -> int:
        """Return how many bundled cases a method has."""
        return dict(self.cases).get(method, 0)


def runnable(identity: str, session: Session) -> Runnable | None:
    """Return the runnable program of a session, None without one."""
    from inspector.files.origin import device_name
    from inspector.graph.operator_libraries import foreign_operators

    kinds: dict[str, list[str]] = {}
    for file in session.files:
        if not file.error:
            kinds.setdefault(file.kind, []).append(os.path.abspath(file.path))
    programs = [*kinds.get("bpte", ()), *kinds.get("pte", ())]
    if not programs:
        return None
    program = programs[0]
    tables = session.bundled_program_table if kinds.get("bpte") else session.program
    suites = session.bundled.method_test_suites if session.bundled is not None else ()
    traces = (*kinds.get("etdump", ()), *kinds.get("debug_buffer", ()))
    foreign = foreign_operators(session)
    plans = tables.plans if tables is not None else ()
    used = [backend_of(one.id) for plan in plans for one in plan.delegates]
    return Runnable(
        identity,
        program,
        (kinds.get("etrecord") or [""])[0],
        tuple(kinds.get("ptd", ())),
        tuple(plan.name for plan in plans),
        tuple((suite.method_name, len(suite.test_cases)) for suite in suites),
        bool(kinds.get("bpte")),
        tuple(os.path.abspath(one.path) for one in session.files if one.path not in traces),
        traces,
        any(one.has_engines for one in used),
        foreign,
        _registering(session) if foreign else (),
        device_name(session),
        tuple(dict.fromkeys(one.name.lower() for one in used if one.executor and one.has_options)),
    )


def _registering(session: Session) -> tuple[str, ...]:
    """Return the libraries that registered the operators of a program, according to its recipe."""
    from inspector.recipes.compile_job import registering_code
    from inspector.recipes.recipe import RecipeError
    from inspector.recipes.session_recipe import session_recipe

    try:
        return registering_code(session_recipe(session).recipe.job)
    except RecipeError:
        return ()


@dataclass(frozen=True, slots=True)
class RunForm:
    """The contents of the panel.

    Attributes:
        method: empty for the first one
        inputs: random, ones, zeros, file, case or sequence
        file: of inputs
        case: number of a bundled case
        runs: measured; 0 until the mean is known well
        warmup: before them; -1 until their times are alike
        level: whose values are recorded
        threads: 0 for torch's default; the times of one are the steadiest; -1 to measure several
            numbers and run with the best
        seed: of random inputs
        engine: for delegates whose backend has several engines
        folder: for the files; empty for one next to the program
        toolchain: of the runtime, empty for ours
        python: interpreter with it, empty for the current one
        libraries: files that register operators, separated as in a search path
        device: name of the device it runs on, empty for this machine
        options: of backends, each ``NAME:OPTION=VALUE``, separated by spaces
        sequence: folder of inputs, or ``FILE.py:NAME``, each item for one call
    """

    method: str = ""
    inputs: str = MADE[0]
    file: str = ""
    case: int = 0
    runs: int = AUTO_RUNS
    warmup: int = AUTO_WARMUP
    level: str = LEVELS[0]
    threads: int = 1
    seed: int = 0
    engine: str = ENGINES[0]
    folder: str = ""
    toolchain: str = ""
    python: str = ""
    libraries: str = ""
    device: str = ""
    options: str = ""
    sequence: str = ""

    @property
    def backend_options(self) -> tuple[str, ...]:
        """Return the options of backends; none where another runtime or a device runs it."""
        return tuple(self.options.split()) if not (self.device or self.toolchain) else ()

    @property
    def fixed_threads(self) -> int:
        """Return the threads of jobs that measure no several numbers."""
        return 1 if self.threads == SWEEP_THREADS else self.threads

    def problem(self, what: Runnable | None) -> str:
        """Return the first problem as one sentence, empty if it can be run."""
        if what is None:
            return "Open a program to run it."
        if self.inputs == FILE and not os.path.isfile(self.file):
            return f"{self.file} not found." if self.file else "Choose a file of inputs."
        if self.inputs == SEQUENCE and (wrong := self._sequence_problem()):
            return wrong
        if self.inputs == CASE and self.case >= what.cases_of(self.method_of(what)):
            return "The method has no such bundled case."
        if what.options_of and (wrong := _wrong_option(self.backend_options)):
            return f"{wrong}."
        gone = next((path for path in self.loaded(what) if not os.path.isfile(path)), "")
        if gone:
            return f"{gone} not found."
        folder = self.target(what)
        if os.path.exists(folder) and not os.path.isdir(folder):
            return f"{folder} is a file, not a folder."
        if _holds_run(folder):
            return "The folder contains an earlier run: choose another, or none for a new one."
        if not _is_empty(folder):
            return "The folder contains files: choose an empty one."
        return ""

    def _sequence_problem(self) -> str:
        from inspector.recipes.data_source import DataSourceError, data_source

        try:
            found = data_source(self.sequence)
        except DataSourceError:
            return "Choose a folder of inputs, or FILE.py:NAME."
        if found.generated or not os.path.exists(found.path):
            return f"{self.sequence} not found."
        if self.toolchain or self.device:
            return "A sequence runs on this machine, on ETScope's own runtime."
        return ""

    def method_of(self, what: Runnable) -> str:
        """Return the method that will run."""
        if self.method in what.methods:
            return self.method
        return "forward" if "forward" in what.methods else next(iter(what.methods), "")

    def loaded(self, what: Runnable) -> tuple[str, ...]:
        """Return the libraries of operators that are loaded: empty if none is needed.

        By default the trusted ones of the recipe.
        """
        if not what.foreign:
            return ()
        return paths_in(self.libraries) or tuple(path for path in what.code if is_agreed(path))

    def target(self, what: Runnable) -> str:
        """Return the folder for the files."""
        if self.folder:
            return os.path.abspath(self.folder)
        return default_folder(what.program, self.device)

    def logging_values(self, what: Runnable) -> RunForm:
        """Return the form of a run that logs all values: this one, if it is valid."""
        form = RunForm() if self.problem(what) else replace(self, folder="")
        return replace(form, level="intermediate")

    def job(self, what: Runnable) -> RunJob:
        """Return the requested job."""
        from inspector.jobs.executing import RunJob

        here, calls = not self.device, self.inputs == SEQUENCE
        made = MADE[0] if calls else self.inputs if self.inputs in MADE else ""
        return RunJob(
            program=what.program,
            method=self.method_of(what),
            inputs=self.file if self.inputs == FILE else made,
            case=self.case if self.inputs == CASE else None,
            seed=self.seed,
            runs=None if calls or self.runs == AUTO_RUNS else self.runs,
            warmup=None if calls or self.warmup == AUTO_WARMUP else self.warmup,
            debug_level=self.level,
            record=what.record if here and not self.toolchain else "",
            data_files=what.data_files,
            libraries=self.loaded(what),
            threads=self.fixed_threads,
            sweep_threads=self.threads == SWEEP_THREADS and not calls,
            engine=self.engine if what.engines and here and not self.toolchain else ENGINES[0],
            backend_options=self.backend_options if what.options_of else (),
            toolchain=self.toolchain if here else "",
            python=self.python if here and self.toolchain else "",
            device=self.device,
            sequence=self.sequence if calls else "",
        )


def _wrong_option(words: tuple[str, ...]) -> str:
    """Return why options of backends are refused, empty if they are not."""
    from inspector.jobs.backend_options import BackendOptionError, options_by_backend

    try:
        options_by_backend(words)
    except BackendOptionError as error:
        return str(error)
    return ""


def default_folder(program: str, device: str = "") -> str:
    """Return the folder of the next run: next to the program, else a writable folder.

    Earlier runs stay: the folders of a program are numbered from the second one on.
    """
    place = _beside(Path(program), f"run_{device}" if device else "run")
    return next(str(one) for one in _numbered(place) if _is_empty(str(one)))


def evaluation_folder(program: str) -> str:
    """Return the folder of evaluations, which go on there: next to the program if possible."""
    return str(_beside(Path(program), "eval"))


def sweep_folder(program: str) -> str:
    """Return the folder of the next sweep over the recipe of a program."""
    place = _beside(Path(program), "sweep")
    return next(str(one) for one in _numbered(place) if _is_empty(str(one)))


def _beside(program: Path, suffix: str) -> Path:
    name, ours = f"{program.stem}_{suffix}", Path(__file__).parents[1]
    if os.access(program.parent, os.W_OK) and not program.is_relative_to(ours):
        return program.with_name(name)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "etscope" / f"{program.parent.name}_{name}"


def _numbered(place: Path) -> Iterator[Path]:
    yield place
    yield from (place.with_name(f"{place.name}_{number}") for number in count(2))


def _is_empty(folder: str) -> bool:
    """Return whether nothing is in a folder, or it is not there."""
    try:
        return not os.listdir(folder)
    except FileNotFoundError:
        return True
    except OSError:  # it will be said why it cannot be written
        return os.path.isdir(folder)


def _holds_run(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, _REPORT))


def run_form_from(content: object) -> RunForm:
    """Return the form in a JSON object; missing or invalid fields become defaults.

    Method, case and folder are those of the program that was run, not the next; which values are
    recorded is chosen for each run, since it costs time and space.
    """
    found = read_parts(content, RunForm, "last_run", choices=_CHOICES, limits=_LIMITS)
    return replace(found, method="", case=0, folder="", level=LEVELS[0])


def paths_in(text: str) -> tuple[str, ...]:
    """Return absolute paths from a string in search path form."""
    names = (name.strip() for name in text.split(os.pathsep))
    return tuple(os.path.abspath(name) for name in names if name)


def with_path(text: str, path: str) -> str:
    """Return the string with one more file."""
    return f"{text.rstrip()}{os.pathsep}{path}" if text.strip() else path
