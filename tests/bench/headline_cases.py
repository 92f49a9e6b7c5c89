"""Is the headline of a default run the program's own time? Eight programs, three ways to run them.

The same `etscope run` without a trace and with logged values says the same within 10 %, and what
`etscope profile` shows sums up to it. Runs of one program are made in turns, since machines drift.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.bench.child import ENVIRONMENT, ROOT
from tests.bench.result import Result

_NETS = Path(__file__).with_name("headline_nets.py")
_XNNPACK = ("--partitioner", "xnnpack")
_INT8 = ("--quantize", "static", *_XNNPACK)
_STOCK = ("--toolchain", "executorch")
_PROGRAMS: dict[str, tuple[str, ...]] = {
    "tiny portable": (),
    "tiny xnnpack": _XNNPACK,
    "dense portable": (),
    "dense xnnpack": _XNNPACK,
    "dense int8": _INT8,
    "dense stock": (*_STOCK, *_XNNPACK),
    "encoder portable": (),
    "encoder xnnpack": _XNNPACK,
}
_WAYS = {
    "default": (),
    "without a trace": ("--no-trace",),
    "with values": ("--debug-level", "intermediate"),
}
_TURNS, _LIMIT = 3, 0.1


def headlines(folder: Path) -> Iterable[Result]:
    """Headlines of a default run, of one without a trace, and of one with values."""
    place = folder / "headlines"
    shutil.rmtree(place, ignore_errors=True)
    for name, options in _PROGRAMS.items():
        program = place / name.replace(" ", "_")
        _etscope("compile", f"{_NETS}:{name.split()[0]}", "-o", str(program), *options)
        found: dict[str, list[float]] = {way: [] for way in _WAYS}
        for turn in range(_TURNS):
            for way, words in _WAYS.items():
                run = f"{program}/{way}-{turn}"
                _etscope("run", str(program / "model.pte"), "-o", run, *words)
                report = json.loads(Path(run, "run.json").read_text("utf-8"))
                found[way].append(report["latency_ms"]["mean"])
        middle = {way: statistics.median(values) for way, values in found.items()}
        detail = ", ".join(f"{way} {1e3 * value:.1f} us" for way, value in middle.items())
        for way in list(_WAYS)[1:]:
            apart = abs(middle["default"] / middle[way] - 1)
            yield Result(f"headline of {name}, {way}", apart, "x", _LIMIT, detail=detail)
        yield _sum(name, program)


def _sum(name: str, program: Path) -> Result:
    """Return how far the sum of a profile is from its headline."""
    trace = program / "default-0" / "run.etdp"
    text = _etscope("profile", str(program / "model.pte"), str(trace), "--format", "json")
    method = json.loads(text)["data"]["methods"]["forward"]
    parts = method["attributed_ms"] + method["unattributed_ms"] - method["tracing_ms"]
    report = json.loads((trace.parent / "run.json").read_text("utf-8"))
    headline = report["latency_ms"]["mean"]
    assert method["latency_ms"] == headline
    detail = f"{parts:.9f} and {headline:.9f} ms"
    return Result(
        f"sum of {name} against its headline", abs(parts / headline - 1), "x", 1e-12, detail=detail
    )


def _etscope(*words: str) -> str:
    command = [sys.executable, "-m", "devtools_app", *words]
    environment: dict[str, Any] = ENVIRONMENT
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr[-2000:]}")
    return done.stdout


HEADLINE_CASES = (headlines,)
