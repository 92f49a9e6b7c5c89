"""Benchmarks of the closed loop: a change compiled, run and compared, and numeric gaps."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from inspector.compare.content import comparison_content
from inspector.compare.sessions import compare_sessions
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.jobs.compile_server import CompileServer
from inspector.jobs.executing import RunJob
from inspector.jobs.messages import Ended
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import PROGRAM, RECORD, CompileJob
from inspector.recipes.source import Source
from tests.bench.child import DATA, INSPECTOR, ask, ask_module
from tests.bench.files import model_sessions
from tests.bench.result import Result
from tests.bench.server_cases import SOURCE, seconds_of, without

_MODEL = "MobileNetV2"
_CHANGES = 3
_RUNS, _WARMUP = 3, 1  # as the window runs a variant

_GAP = (
    INSPECTOR
    + """
if not stock:
    import torch
for _ in range(int(sys.argv[3])):
    start = time.perf_counter()
    one = opened()
    try:
        frame = one.calculate_numeric_gap("MSE")
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"))
        sys.exit()
    first = time.perf_counter()
    one.calculate_numeric_gap("L1")
    one.calculate_numeric_gap("SNR")
    samples.append([first - start, (time.perf_counter() - first) / 2])
each = [1e3 * sorted(column)[len(samples) // 2] / len(frame) for column in zip(*samples)]
print(json.dumps([each, len(frame)]))
"""
)
_SESSIONS = ("convnet_portable", "convnet_xnnpack", "mm_portable", "mm_xnnpack")
_LARGE = "mv2_portable"
_FURTHER = ("tinygpt_portable", "tinygpt_xnnpack")  # of which the stock tool makes nothing


def gap_rows(folder: Path) -> Iterable[Result]:
    """A row of calculate_numeric_gap against the stock tool, wherever that has an answer."""
    small = {name: DATA / "corpus/v1.5.1" / name for name in (*_SESSIONS, *_FURTHER)}
    for name, path in {**small, _LARGE: model_sessions(folder)[_LARGE]}.items():
        yield from _gap_of(name, str(path))


def _gap_of(name: str, folder: str) -> Iterable[Result]:
    (first, further), rows = ask(_GAP, folder, "ours", "5")
    answer = ask(_GAP, folder, "stock", "3")
    known = not isinstance(answer, str)
    theirs, stock_rows = answer if known else ((None, None), 0)
    for what, mine, other, limit in (
        ("first distance, with opening", first, theirs[0], None),
        ("each further distance", further, theirs[1], 5.0),
    ):
        detail = f"ours {mine:.2f} ms a row, {rows} rows"
        title = f"gap of {name}, {what}"
        if other is None:
            yield Result(title, mine, "ms", detail=f"{detail}; stock: {answer[:60]}")
        else:
            detail += f"; stock {other:.2f} ms a row, {stock_rows} rows"
            yield Result(title, other / mine, "x", limit, True, detail)


def changed_and_compared(_folder: Path) -> Iterable[Result]:
    """From a change to the comparison with what was before, beside the stock compile alone.

    The workers are warm, as those of a window in which a change has been looked at; the run and
    the comparison are what the window does on Ctrl+R, each from its beginning.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "net.py"
        path.write_text(SOURCE)
        job = CompileJob(Source(str(path), "net"), partitioners=("xnnpack",))
        server = CompileServer()
        try:
            nodes = [
                node.name
                for node in server.preview(job).methods["forward"].nodes
                if node.partition is not None
            ]
            base, _ = _variant(server, job, folder / "base")
            step = len(nodes) // _CHANGES
            found = [
                _round(server, base, without(job, nodes[at * step]), folder / str(at))
                for at in range(_CHANGES)
            ]
        finally:
            server.close()
    stock = ask_module("tests.bench.compile_child", _MODEL, "stock", "--warm", "2", "--xnnpack")
    theirs = sum(stock["warm"])
    parts = [statistics.median(column) for column in zip(*found, strict=True)]
    detail = "compile {:.2f}, run {:.2f}, open and compare {:.2f} s".format(*parts)
    detail += f"; stock compile {theirs:.2f} s warm, {sum(stock['first']):.2f} s first"
    value = statistics.median(map(sum, found)) / theirs
    name = f"change to comparison, {_MODEL}, against the stock compile alone"
    yield Result(name, value, "x", 0.2, detail=detail)


def _variant(server: CompileServer, job: CompileJob, folder: Path) -> tuple[Session, list[float]]:
    """Compile, run and open; return the seconds of each as well."""
    made = seconds_of(lambda: _check(server.compile(job, folder).ended))
    wanted = RunJob(str(folder / PROGRAM), runs=_RUNS, warmup=_WARMUP, record=str(folder / RECORD))

    def run() -> None:
        running = JobRun(wanted, folder / "run", worker=server.runner.take())
        try:
            outcome = running.wait()
            assert outcome is not None
            _check(outcome.ended)
        finally:
            running.close()
            server.runner.start()

    ran = seconds_of(run)
    start = time.perf_counter()
    session = load_session([str(folder), str(folder / "run")])
    return session, [made, ran, time.perf_counter() - start]


def _round(server: CompileServer, base: Session, job: CompileJob, folder: Path) -> list[float]:
    """Return the seconds of the compile, the run and the comparison of a change."""
    while not server.runner.ready:  # who has just looked at a comparison takes longer
        time.sleep(0.05)
    session, times = _variant(server, job, folder)
    compared = seconds_of(lambda: comparison_content(compare_sessions([base, session])))
    return [times[0], times[1], times[2] + compared]


def _check(ended: Ended) -> None:
    if ended is not Ended.FINISHED:
        raise RuntimeError(f"a job of the benchmark was {ended.value}")


LOOP_CASES = (gap_rows, changed_and_compared)
