"""Ethos-U streams as every release packs them: shapes, scratch, blocks beside the program."""

from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema import payloads
from schema.errors import FormatError
from tests.schema.test_payload import assert_graph, assert_parts
from tests.schema.test_payload_backends import block, commands, interface, stream

DIMS = {"0.2 to 0.7": 4, "1.0": 6}
WORDS = commands(0x2, 0x3, 0x5, 0x6, 0x7, 0x10, 0x0, 0x12)
BLOCKS = ("cmd_data", "weight_data", "scratch_size", "inputs", "outputs")


def tensors(count: int, rank: int) -> bytes:
    rows = [(*[1] * (rank - 2), index + 1, 7, 2, 16 * index, 1) for index in range(count)]
    return interface(*rows)


def contents(rank: int, inputs: int, outputs: int, weights: bytes = b"w" * 33) -> dict[str, bytes]:
    return {
        "cmd_data": WORDS,
        "weight_data": weights,
        "scratch_size": struct.pack("<I", 4096),
        "inputs": tensors(inputs, rank),
        "outputs": tensors(outputs, rank),
    }


def packed(parts: dict[str, bytes], outside: frozenset[str] = frozenset()):
    """Return the stream, and the blocks that go to named data with their keys."""
    named = {
        name: (hashlib.sha256(f"{name} place\0".encode() + parts[name]).hexdigest(), parts[name])
        for name in outside
    }
    rows = [
        block(name, named[name][0].encode(), 1) if name in named else block(name, data)
        for name, data in parts.items()
    ]
    return stream(*rows), {key: memoryview(data) for key, data in named.values()}


@pytest.mark.parametrize("release", DIMS)
@settings(deadline=None, max_examples=25)
@given(inputs=st.integers(0, 5), outputs=st.integers(0, 5))
def test_interface_of_any_size_is_read(release: str, inputs: int, outputs: int) -> None:
    rank = DIMS[release]
    data, _ = packed(contents(rank, inputs, outputs))
    found = payloads.decode_strict("EthosUBackend", data)
    assert_parts(found, data)
    assert found.graph is not None
    assert_graph(found.graph)
    assert (len(found.graph.inputs), len(found.graph.outputs)) == (inputs, outputs)
    for index, name in enumerate(found.graph.inputs):
        tensor = found.graph.values[name].tensor
        assert tensor.sizes == (*[1] * (rank - 2), index + 1, 7)
        assert found.summary[f"input {index}"] == f"region 1, offset {16 * index}"
    assert found.issues == ()


@settings(deadline=None, max_examples=25)
@given(st.frozensets(st.sampled_from(BLOCKS)))
def test_blocks_beside_the_program_are_found_by_their_keys(outside: frozenset[str]) -> None:
    data, named = packed(contents(6, 1, 2), outside)
    found = payloads.decode_strict("EthosUBackend", data, named)
    inside = payloads.decode_strict("EthosUBackend", packed(contents(6, 1, 2))[0])
    assert_parts(found, data)
    assert found.graph == inside.graph
    assert found.summary["scratch bytes"] == 4096
    assert {item.role for item in found.constants if item.location == "named"} == outside
    assert found.issues == ()
    alone = payloads.decode_strict("EthosUBackend", data)
    assert len(alone.issues) == bool(outside)
    assert_graph(alone.graph)


def test_operations_are_in_order_with_their_kinds() -> None:
    graph = payloads.decode_strict("EthosUBackend", packed(contents(6, 1, 1))[0]).graph
    assert [node.target for node in graph.nodes] == [
        "CONV", "DEPTHWISE", "POOL", "ELEMENTWISE", "RESIZE", "DMA_START",
    ]  # fmt: skip


@pytest.mark.parametrize("weights", [b"", b"w", b"w" * 15, b"w" * 16, b"w" * 17])
def test_blocks_end_where_their_padding_does(weights: bytes) -> None:
    data, _ = packed(contents(6, 1, 1, weights))
    found = payloads.decode_strict("EthosUBackend", data)
    assert found.summary["weight bytes"] == len(weights)
    assert_parts(found, data)


def test_odd_streams_are_read_with_a_warning() -> None:
    parts = contents(6, 1, 1)
    whole = packed(parts)[0]
    twice = stream(
        *(block(name, data) for name, data in (*parts.items(), ("inputs", tensors(2, 6))))
    )
    cases = {
        "has no block vela_end_stream": whole[:-32],
        "64 bytes follow": whole + bytes(64),
        "'inputs' is there 2 times": twice,
        "the block 'new_block' is not known": stream(block("new_block", b"x")),
        "a command stream COP1 or COP2": packed(parts | {"cmd_data": b"COP9" + WORDS[4:]})[0],
    }  # fmt: skip
    for sentence, data in cases.items():
        found = payloads.decode_strict("EthosUBackend", data)
        assert_parts(found, data)
        assert [issue.message for issue in found.issues if sentence in issue.message], sentence


@pytest.mark.parametrize("cut", [1, 20, 33, 100, 200])
def test_stream_cut_inside_a_block_names_the_block(cut: int) -> None:
    data = packed(contents(6, 1, 1))[0]
    with pytest.raises(FormatError, match=r"in (block \d|\w+)"):
        payloads.decode_strict("EthosUBackend", data[: 64 + cut])
