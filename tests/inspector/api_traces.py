"""Traces no committed session has, from a seed: delegates with ids of both types, attached bytes,
values without times, loops, names that are absent, several patterns of runs.

What the stock tool is known to get wrong stays out: ids that are parts of other ids, scopes outside
of instructions that are no framework scopes, clocks that wrap inside delegates.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from schema import etdump, etrecord
from schema.etdump import DebugEvent, DebugTensor, DebugValue, ProfileEvent, ValueType

IDS: tuple[tuple[int, str | None], ...] = ((0, None), (1, None), (7, None), (-1, "conv"), (-1, "z"))
KERNELS = ("native_call_mm.out", "OPERATOR_CALL", "DELEGATE_CALL", "JF_CALL", None, "")
FRAMEWORK = ("Method::init", "Program::load_method", "Method::execute")
DELEGATES = {"1": {"name": "Odd", "delegate_map": {"0": [1, 2], "1": [], "conv": [4]}}}
COUNTS = {"1": 3, "3": 2}


def random_trace(seed: int) -> etdump.ETDump:
    """Return a trace of a few patterns, each run a few times."""
    made = random.Random(seed)
    patterns = [_pattern(made) for _ in range(made.randint(1, 3))]
    runs: list[etdump.RunData] = []
    for _ in range(made.randint(1, 7)):
        number = made.randrange(len(patterns))
        name = made.choice(("Default", "Execute")) if number else "Execute"
        index = made.choice((-1, -1, 0))
        runs.append(etdump.run(name, _timed(made, patterns[number]), bundled_input_index=index))
    return etdump.dump(runs, size_prefixed=True)


Pattern = list[tuple[str, object]]


def _pattern(made: random.Random) -> Pattern:
    events: Pattern = []
    for _ in range(made.randint(1, 6)):
        number = made.choice((0, 1, 2, 3))
        steps = _instruction(made, number if made.random() < 0.9 else 9)
        events += steps * made.choice((1, 1, 1, 3))  # passes of a loop
    events.append(("profile", (made.choice(FRAMEWORK), -1, 0, -1, None)))
    if made.random() < 0.5:
        events.append(("debug", (-1, 0, -1, None, None, True)))
    return events


def _instruction(made: random.Random, number: int) -> Pattern:
    inner, text = made.choice(IDS) if made.random() < 0.5 else (-1, None)
    delegated = inner != -1 or text is not None
    name = made.choice((None, "")) if delegated else made.choice(KERNELS)
    events: Pattern = []
    for _ in range(made.choice((0, 0, 1, 2))):
        events.append(("debug", (0, number, inner, text, None, False)))
    if not events or made.random() < 0.8:
        events.append(("profile", (name, 0, number, inner, text)))
    elif number == 9 and not delegated:  # nothing else has this number: the value names itself
        events = [("debug", (0, 9, -1, None, "named", False))]
    return events


def _timed(made: random.Random, pattern: Pattern) -> list[etdump.AnyEvent]:
    at = made.randrange(1 << 30)
    found: list[etdump.AnyEvent] = []
    for row, (kind, facts) in enumerate(pattern):
        if kind == "debug":
            chain, number, inner, text, name, output = facts
            found.append(DebugEvent(_value(row, output), chain, number, name, inner, text))
            continue
        name, chain, number, inner, text = facts
        at += made.randrange(1000)
        attached = made.choice((None, b"", b"abc")) if inner != -1 or text else None
        event = ProfileEvent(name, chain, number, at, at + made.randrange(5000), inner, text)
        found.append(etdump_with(event, attached))
    return found


def etdump_with(event: ProfileEvent, attached: bytes | None) -> ProfileEvent:
    """Return the event with bytes of its backend."""
    ids = (event.delegate_id_int, event.delegate_id_str)
    times = (event.start_time, event.end_time)
    return ProfileEvent(event.name, event.chain_index, event.instruction_id, *times, *ids, attached)


def _value(row: int, output: bool) -> DebugValue:
    flag = True if output else None
    kind = row % 4
    if kind == 0:
        return DebugValue(ValueType.INT, int_value=row, output=flag)
    if kind == 1:
        return DebugValue(ValueType.BOOL, bool_value=bool(row % 8 == 1), output=flag)
    if kind == 2:
        return DebugValue(ValueType.DOUBLE, double_value=row / 4, output=flag)
    tensors = (DebugTensor(6, (2,), (1,), 0), DebugTensor(4, (1, 1), (1, 1), 8))
    if row % 8 == 3 and not output:  # the stock tool cannot compare lists of outputs
        return DebugValue(ValueType.TENSOR_LIST, tensors=tensors, output=flag)
    return DebugValue(ValueType.TENSOR, tensor=tensors[0], output=flag)


def write_session(folder: Path, seed: int, record: Path) -> Path:
    """Write a random trace, a small debug buffer, and a record with a delegate that maps ids."""
    folder.mkdir()
    (folder / "run.etdp").write_bytes(etdump.encode(random_trace(seed)))
    (folder / "run.debug").write_bytes(bytes(range(64)))
    given = etrecord.decode(record.read_bytes())
    changed = etrecord.replace_members(
        given,
        {
            "delegate_map": json.dumps({"forward": DELEGATES}).encode(),
            "instruction_id_to_num_outs_map": json.dumps({"forward": COUNTS}).encode(),
        },
    )
    (folder / "model.etrecord").write_bytes(etrecord.encode(changed))
    return folder
