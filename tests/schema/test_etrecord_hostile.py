"""Damaged records: only FormatError or a partial view, in bounded time and memory."""

from __future__ import annotations

import io
import json
import pickletools
import random
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from schema.errors import FormatError
from schema.etrecord import decode, encode, node_list, read_torch_save, replace_members, tensors
from schema.graph import Graph
from tests.schema.etrecord_samples import DATA, record_of, saved

pytestmark = pytest.mark.slow

NAMES = (
    "corpus/v1.5.1/mm_xnnpack/model.etrecord",
    "corpus/v1.0.1/mm_portable/model.etrecord",
    "corpus/special/control_flow/model.etrecord",
    "corpus/special/dynamic/model.etrecord",
    "records/lowered.etrecord",
    "records/many_kinds.etrecord",
)
FILES = [(DATA / name).read_bytes() for name in NAMES]
MAPS = ("debug_handle_map", "delegate_map", "instruction_id_to_num_outs_map", "export_graph_id")
MIB = 1 << 20


def use_everything(data: bytes) -> str:
    """Open a record and touch all of it the way a session would; return how it went."""
    try:
        record = decode(data, file="x")
    except FormatError as error:
        return f"refused {error}"[:7]
    issues = record.check()
    for name in record.program_names:
        try:
            use_graph(record.graph(name))
            for tensor in tensors(record.saved(f"{name}_state_dict").value):
                tensor.to_numpy()
        except FormatError:
            continue  # reported by check()
    assert decode(encode(record)) == record
    record.verify_checksums()
    return "partial" if issues else "whole"


def use_graph(graph: Graph) -> None:
    assert len({entry.name for entry in graph.nodes}) == len(graph.nodes)
    for listed in node_list(graph):
        assert isinstance(listed.name.encode(), bytes)
    for entry in graph.nodes:
        for name in (*entry.inputs, *entry.outputs):
            assert isinstance(graph.values[name].name.encode(), bytes)
        assert isinstance(entry.module_path, str)
    for value in graph.values.values():
        assert value.tensor is None or value.tensor.dtype
    for inner in graph.subgraphs.values():
        use_graph(inner)


# ---- damage of bytes
def truncated(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def flipped(data: bytes, rng: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 8, 64))):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def overwritten(data: bytes, rng: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 8, 64))):
        found[rng.randrange(len(found))] = rng.choice(b'\x00\xff\x80\x7f09"[]{},\\')
    return bytes(found)


def shuffled(data: bytes, rng: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 4))):
        at, source = rng.randrange(len(found)), rng.randrange(len(found))
        length = rng.randrange(1, 200)
        found[at : at + length] = found[source : source + length]
    return bytes(found)


def in_the_directory(data: bytes, rng: random.Random) -> bytes:
    """Change numbers of the central directory, where offsets and sizes are."""
    found = bytearray(data)
    start = struct.unpack_from("<I", data, len(data) - 6)[0]
    for _ in range(rng.choice((1, 3, 9))):
        at = rng.randrange(start, len(data) - 4)
        found[at : at + 4] = struct.pack(
            "<I", rng.choice((0, 1, 8, 0xFFFFFFFF, rng.getrandbits(17)))
        )
    return bytes(found)


# ---- damage of JSON
JUNK = (None, 1, -1, 2**70, 1.5, float("inf"), "x", "", [], {}, [1], {"as_int": 1}, True)


def changed_tree(tree: Any, rng: random.Random, rate: float) -> Any:
    if rng.random() < rate:
        return rng.choice(JUNK)
    if isinstance(tree, dict):
        kept = {key: value for key, value in tree.items() if rng.random() > rate / 2}
        return {key: changed_tree(value, rng, rate) for key, value in kept.items()}
    if isinstance(tree, list):
        return [changed_tree(item, rng, rate) for item in tree if rng.random() > rate / 2]
    return tree


def in_the_json(data: bytes, rng: random.Random) -> bytes:
    record = decode(data)
    rate = rng.choice((0.0005, 0.003, 0.02))
    changes: dict[str, bytes | None] = {}
    for name in (*record.program_names, *MAPS):
        if name in record.archive:
            share = rate if name in record.program_names else 0.2
            tree = changed_tree(json.loads(bytes(record.read(name))), rng, share)
            changes[name] = json.dumps(tree).encode()
    return encode(replace_members(record, changes))


Damage = Callable[[bytes, random.Random], bytes]
DAMAGES: list[Damage] = [truncated, flipped, overwritten, shuffled, in_the_directory, in_the_json]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_record_damaged_is_refused_or_read_in_part(damage: Damage) -> None:
    outcomes: set[str] = set()
    for seed in range(120):
        rng = random.Random(f"{damage.__name__} {seed}")
        started = time.process_time()
        outcomes.add(use_everything(damage(rng.choice(FILES), rng)))
        assert time.process_time() - started < 5
    assert "partial" in outcomes


OPCODES = [opcode.code.encode("latin-1") for opcode in pickletools.opcodes]


def pickles() -> list[tuple[bytes, list[bytes]]]:
    found: list[tuple[bytes, list[bytes]]] = []
    for data in FILES:
        record = decode(data)
        for name in record.program_names:
            with zipfile.ZipFile(io.BytesIO(record.read(f"{name}_state_dict"))) as inner:
                names = [entry for entry in inner.namelist() if "/data/" in entry]
                found.append((inner.read("archive/data.pkl"), [inner.read(n) for n in names]))
    return found


def test_pickle_damaged_is_refused_or_read_in_part() -> None:
    samples = pickles()
    refused = 0
    for seed in range(600):
        rng = random.Random(seed)
        pickle, storages = rng.choice(samples)
        body = bytearray(pickle)
        for _ in range(rng.choice((1, 3, 10, 50))):
            at = rng.randrange(len(body) + 1)
            body[at : at + rng.randrange(3)] = rng.choice(OPCODES) * rng.randrange(3)
        try:
            found = read_torch_save(memoryview(saved(bytes(body), *storages)), "x")
            assert repr(found.value)
            for tensor in tensors(found.value):
                tensor.to_numpy()
        except FormatError:
            refused += 1
    assert 0 < refused < 600


# ---- bombs: three bytes each of something that costs much more
def graph_of(nodes: bytes) -> bytes:
    return b'{"graph_module": {"graph": {"nodes": [' + nodes + b"]}}}"


def repeated(unit: bytes, total: int) -> bytes:
    return b",".join([unit] * (total // (len(unit) + 1)))


COND = b'{"name": "c", "target": "torch.ops.higher_order.cond", "inputs": [%s]}'
BRANCH = b'{"name": "", "arg": {"as_graph": {"name": "s", "graph": {"nodes": [{"name": "n%d", '
BRANCH += b'"target": "t", "inputs": []}]}}}}'
BOMBS: dict[str, Callable[[], dict[str, bytes]]] = {
    "empty_lists": lambda: {"exported_program": b"[" + b"[]," * MIB + b"0]"},
    "empty_objects": lambda: {"debug_handle_map": b"[" + b"{}," * MIB + b"0]"},
    "open_brackets": lambda: {"exported_program": b"[" * (3 * MIB)},
    "quotes": lambda: {"exported_program": b'"' * (3 * MIB)},
    "backslashes": lambda: {"exported_program": b'"' + b"\\" * (3 * MIB)},
    "digits": lambda: {"exported_program": b"9" * (3 * MIB)},
    "bad_nodes": lambda: {"exported_program": graph_of(repeated(b"1", 3 * MIB))},
    "same_names": lambda: {
        "exported_program": graph_of(
            repeated(b'{"name": "a", "target": "t", "inputs": [], "outputs": []}', MIB)
        )
    },
    "many_branches": lambda: {
        "exported_program": graph_of(COND % b",".join(BRANCH % i for i in range(15_000)))
    },
    "many_inputs": lambda: {
        "exported_program": b'{"graph_module": {"graph": {"nodes": [], "inputs": ['
        + b",".join(b'{"as_tensor": {"name": "a%d"}}' % i for i in range(20_000))
        + b']}, "signature": {"user_inputs": ['
        + b",".join(b'"a%d"' % (20_000 - i) for i in range(20_000))
        + b"]}}}"
    },
    "module_path": lambda: {
        "exported_program": graph_of(
            b'{"target": "t", "inputs": [], "metadata": {"nn_module_stack": "k,'
            + b"getattr(" * 300_000
            + b',T"}}'
        )
    },
    "pickled_lists": lambda: {"reference_outputs": saved(b"\x80\x02" + b"]" * (3 * MIB))},
    "pickled_memos": lambda: {"reference_outputs": saved(b"\x80\x04" + b"]\x94" * MIB)},
    "pickled_rebuilds": lambda: {
        "reference_outputs": saved(
            b"\x80\x02"
            + b"(ctorch._tensor\n_rebuild_from_type_v2\nN" * 50_000
            + b"N"
            + b"t" * 50_000
            + b"R."
        )
    },
    "many_members": lambda: {f"m{index}": b"" for index in range(30_000)},
}


@pytest.mark.parametrize("name", BOMBS)
def test_record_with_a_bomb_stays_small_and_fast(name: str) -> None:
    data = record_of(BOMBS[name]())
    started = time.process_time()
    tracemalloc.start()
    try:
        record = decode(data)
        record.check()
        for program in record.program_names:
            try:
                node_list(record.graph(program))
            except FormatError:
                continue
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(data) + 200_000_000
    assert time.process_time() - started < 20  # tracing makes it about four times slower


def test_deflated_json_bomb_stays_small() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("ETRECORD_V0", "")
        target.writestr("exported_program", b"[" + b"[]," * (15 * MIB) + b"0]")
    data = stream.getvalue()
    tracemalloc.start()
    try:
        issues = decode(data).check()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "bytes for a file of this size" in issues[-1].message
    assert peak < 4 * len(data) + 200_000_000
