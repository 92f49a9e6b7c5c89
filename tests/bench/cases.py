"""The benchmarks, one function each; CASES lists them in the order they run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.bench import files
from tests.bench.calibrate_cases import CALIBRATE_CASES
from tests.bench.child import DATA, INSPECTOR, ask, wall_seconds
from tests.bench.compare_cases import COMPARE_CASES
from tests.bench.compile_cases import COMPILE_CASES
from tests.bench.delegate_cases import DELEGATE_CASES
from tests.bench.gui_cases import GUI_CASES
from tests.bench.headline_cases import HEADLINE_CASES
from tests.bench.loop_cases import LOOP_CASES
from tests.bench.payload_cases import PAYLOAD_CASES
from tests.bench.result import Result
from tests.bench.run_cases import RUN_CASES
from tests.bench.server_cases import SERVER_CASES
from tests.bench.sweep_cases import SWEEP_CASES
from tests.bench.tour_cases import TOUR_CASES
from tests.bench.zoo_cases import ZOO_CASES

Case = Callable[[Path], Iterable[Result]]
_INSPECTOR = (
    INSPECTOR
    + """
for _ in range(int(sys.argv[3])):
    start = time.perf_counter()
    frame = opened().to_dataframe()
    samples.append(time.perf_counter() - start)
print(json.dumps([samples, len(frame)]))
"""
)


def dataframe(folder: Path) -> Iterable[Result]:
    """Inspector(...).to_dataframe() against the stock tool: real models, then the small corpus."""
    sessions = {name: (path, 20.0) for name, path in files.model_sessions(folder).items()}
    for name in ("convnet_portable", "convnet_xnnpack", "tinygpt_portable", "tinygpt_xnnpack"):
        sessions[name] = (DATA / "corpus/v1.5.1" / name, None)  # pyright: ignore[reportArgumentType]
    for name, (path, limit) in sessions.items():
        stock, rows = ask(_INSPECTOR, str(path), "stock", "3")
        ours, own_rows = ask(_INSPECTOR, str(path), "ours", "5")
        assert rows == own_rows, f"{name}: {own_rows} rows, the stock tool has {rows}"
        theirs, mine = statistics.median(stock), statistics.median(ours)
        detail = f"stock {theirs:.3f} s, ours {mine:.4f} s, {rows} rows"
        yield Result(f"to_dataframe {name}", theirs / mine, "x", limit, True, detail)


def import_time(_folder: Path) -> Iterable[Result]:
    """`import inspector` as a whole process, less the bare interpreter."""
    bare = wall_seconds("print(0)")
    ours = wall_seconds("import inspector; print(0)")
    detail = f"process {ours:.3f} s, bare interpreter {bare:.3f} s"
    yield Result("import inspector", ours - bare, "s", 0.3, detail=detail)


_MILLION = """
import json, sys, time
from tests.bench.child import peak_mib
from inspector.files.load import load_session
from inspector.profile.methods import analyse_profile
before = peak_mib()
start = time.perf_counter()
session = load_session([sys.argv[1]])
opened = time.perf_counter()
profile = analyse_profile(session)
p50 = profile.rows.column("p50")
tabulated = time.perf_counter()
grown = peak_mib() - before
print(json.dumps([opened - start, tabulated - opened, len(p50), grown]))
"""


def million_events(folder: Path) -> Iterable[Result]:
    """A trace of a million events opened and tabulated: many runs, and one long one."""
    for runs in (1000, 10, 1):
        path = files.million_events(folder, runs=runs)
        opened, tabulated, rows, grown = ask(_MILLION, str(path))
        detail = f"open {opened:.2f} s, tabulate {tabulated:.2f} s, {rows} rows, +{grown:.0f} MiB"
        yield Result(
            f"1,000,000 events in {runs} runs", opened + tabulated, "s", 3.0, detail=detail
        )


_SPARSE = """
import json, sys, time
from tests.bench.child import peak_mib
from inspector.files.load import load_session
from inspector.size.owners import program_size
start = time.perf_counter()
session = load_session([sys.argv[1]])
opened = time.perf_counter() - start
size = program_size(session.program, session.files[0].data)
resident = peak_mib()
print(json.dumps([opened, resident, size.total_bytes]))
"""


def two_gigabytes(folder: Path) -> Iterable[Result]:
    """A program of two gigabytes opened: metadata only."""
    opened, resident, total = ask(_SPARSE, str(files.two_gigabytes(folder)))
    detail = f"{total:,} bytes"
    yield Result("2 GB program, opened", opened, "s", 0.5, detail=detail)
    yield Result("2 GB program, resident memory", resident, "MiB", 200.0, detail=detail)


CASES: tuple[Case, ...] = (
    import_time,
    million_events,
    two_gigabytes,
    *GUI_CASES,
    *TOUR_CASES,
    *COMPILE_CASES,
    *RUN_CASES,
    *DELEGATE_CASES,
    *PAYLOAD_CASES,
    *SERVER_CASES,
    *LOOP_CASES,
    *COMPARE_CASES,
    *CALIBRATE_CASES,
    *HEADLINE_CASES,
    *SWEEP_CASES,
    *ZOO_CASES,
    dataframe,
)
