"""Damaged payloads of every backend: python -m tests.fuzz.payloads --cases 3000.

The bytes of a payload alone are damaged, so that each case reaches a decoder; the named data it
refers to is at hand, damaged too in every third case. One case in twenty is opened as a program.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache

from schema import payloads
from tests.fuzz.memory import limit_address_space
from tests.fuzz.mutate import mutant
from tests.fuzz.open_all import open_all
from tests.fuzz.run import SECONDS, time_limit
from tests.schema.payload_files import DATA, different_blobs
from tests.schema.payload_programs import Family, families, program_of
from tests.schema.test_payload import assert_graph, assert_parts

_OPENED = 20  # one case in so many goes through the analyses
_STREAMS = {"openvino": "OpenvinoBackend", "coreml": "CoreMLBackend"}


@dataclass(frozen=True)
class Found:
    """What a campaign found: outcomes, and a text for each failing case."""

    outcomes: Counter[str]
    failures: list[str]
    slowest_s: float


@cache
def targets() -> tuple[Family, ...]:
    """Return every payload that is damaged."""
    recorded = [
        Family(item.label, item.backend_id, item.data, item.specs,
               {key: bytes(view) for key, view in item.named.items()})
        for item in different_blobs()
    ]  # fmt: skip
    files = [
        Family(path.stem, backend, path.read_bytes())
        for folder, backend in _STREAMS.items()
        for path in sorted((DATA / folder).glob("*.b*"))
    ]
    return tuple(one for one in (*families(), *files, *recorded) if one.data)


def run(cases: int, seed: int = 0) -> Found:
    """Run seeded cases in turn over all payloads."""
    found = Found(Counter(), [], 0.0)
    slowest = 0.0
    for number in range(cases):
        target = targets()[number % len(targets())]
        start = time.process_time()
        try:
            with time_limit(SECONDS):
                outcome = _case(target, seed * 1_000_003 + number)
        except Exception:  # noqa: BLE001 - every escape is a finding
            outcome = "failed"
            where = f"{target.label} seed {seed} case {number}"
            found.failures.append(f"{where}\n{traceback.format_exc(limit=-4)}")
        slowest = max(slowest, time.process_time() - start)
        found.outcomes[outcome] += 1
    return replace(found, slowest_s=slowest)


def _case(target: Family, seed: int) -> str:
    rng = random.Random(seed)
    family = replace(target, data=mutant(target.data, seed)[1])
    if target.named and rng.random() < 1 / 3:
        key = rng.choice(sorted(target.named))
        if target.named[key]:
            named = {**target.named, key: mutant(target.named[key], seed)[1]}
            family = replace(family, named=named)
    if seed % _OPENED == 0:
        return f"program {open_all(program_of(family, inside=True), 'pte')}"
    views = {key: memoryview(data) for key, data in family.named.items()}
    found = payloads.decode(family.backend_id, family.data, views, family.specs)
    assert_parts(found, family.data)
    if found.graph is not None:
        assert_graph(found.graph)
    short = [c for c in found.constants if c.data is not None and len(c.data) < (c.nbytes or 0)]
    assert bool(short) == any("are shorter than" in issue.message for issue in found.issues)
    for name in found.files:
        assert not name.startswith("/")
        assert ".." not in name.split("/")
    if found.format != "unreadable":
        return "read" if found.graph is not None else "described"
    assert len(found.issues) == 1
    assert "\n" not in found.issues[0].message
    return "refused"


def main() -> int:
    """Run the cases asked for and print what came of them."""
    parser = argparse.ArgumentParser(description="Damage payloads and decode them.")
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    limit_address_space()
    start = time.perf_counter()
    found = run(options.cases, options.seed)
    for failure in found.failures:
        sys.stderr.write(failure + "\n")
    outcomes = ", ".join(f"{count} {name}" for name, count in found.outcomes.most_common())
    sys.stdout.write(
        f"{options.cases} payloads in {time.perf_counter() - start:.0f} s: {outcomes};"
        f" slowest {found.slowest_s:.2f} s, {len(found.failures)} failures\n"
    )
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
