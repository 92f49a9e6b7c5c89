"""Verdicts on real runs: python -m tests.bench.statistics [TRIES] [BLOCKS].

One program beside itself and beside one that does a tenth more of the same work, as often as asked.
It takes minutes and is therefore not one of the benchmarks.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from inspector.compare.statistics import ALIKE, SLOWER, judge
from inspector.jobs.executing import MeasureJob, RunJob
from inspector.jobs.run import JobRun
from tests.bench.child import ask

_LAYERS = 10
_MAKE = """
import json, sys
from tests.bench.chain_programs import save_chain
folder = sys.argv[1]
print(json.dumps([save_chain(folder, layers) for layers in map(int, sys.argv[2:])]))
"""


def main() -> int:
    """Measure and print how often which word was said; 1 when a bound is missed."""
    tries = int(sys.argv[1]) if sys.argv[1:] else 100
    blocks = int(sys.argv[2]) if sys.argv[2:] else MeasureJob(()).blocks
    with tempfile.TemporaryDirectory() as folder:
        made = ask(_MAKE, folder, str(_LAYERS), str(_LAYERS * 11 // 10))
        return _measure(Path(made[0]), Path(made[1]), tries, blocks)


def _measure(program: Path, slower: Path, tries: int, blocks: int) -> int:
    words: dict[str, Counter[str]] = {"identical": Counter(), "slower": Counter()}
    for number in range(tries):
        start = time.monotonic()
        # The three are measured side by side, so that both questions are asked of one moment.
        jobs = tuple(RunJob(str(path), threads=1) for path in (program, program, slower))
        running = JobRun(MeasureJob(jobs, blocks))
        outcome = running.wait()
        running.close()
        assert outcome is not None
        assert not outcome.sentence, outcome.sentence
        found = running.state
        same, more = judge(*found.common(0, 1)), judge(*found.common(0, 2))
        words["identical"][same.word] += 1
        words["slower"][more.word] += 1
        taken = time.monotonic() - start
        line = f"{number + 1:3} {taken:5.1f} s  {same.old:.3f} ms  {same.words()}; {more.words()}"
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    alike, found_slower = words["identical"][ALIKE], words["slower"][SLOWER]
    sys.stdout.write(f"identical: not distinguishable in {alike} of {tries}\n")
    sys.stdout.write(f"a tenth more work: found slower in {found_slower} of {tries}\n")
    return 0 if min(alike, found_slower) >= 0.9 * tries else 1


if __name__ == "__main__":
    sys.exit(main())
