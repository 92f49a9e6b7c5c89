"""Traces against the stock tool: the same content read, and ours read by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schema import etdump
from schema.etdump import AllocationEvent, DebugEvent, DebugTensor, DebugValue, ProfileEvent
from schema.etdump.build import dump, run
from tests.conftest import DATA
from tests.oracle.client import Oracle
from tests.schema.etdump_samples import every_value
from tests.schema.payload_flatc import stock_folder, to_json

BROKEN = DATA / "corpus" / "special" / "dynamic"  # logs float16, which the runtime cannot
WHOLE = sorted(path.parent for path in DATA.rglob("run.etdp") if path.parent != BROKEN)
_TYPES = ("Null", "Int", "Bool", "Float", "Double", "Tensor", "TensorList", "String")

pytestmark = pytest.mark.interop


def boxed(kind: str, field: str, item: Any) -> Any:
    return None if item is None else {"type": kind, field: item}


def tensor_facts(tensor: DebugTensor) -> dict[str, Any]:
    return {
        "type": "Tensor",
        "sizes": list(tensor.sizes),
        "strides": list(tensor.strides),
        "offset": tensor.offset,
    }


def value_facts(value: DebugValue) -> dict[str, Any]:
    listed = value.tensors
    return {
        "type": "Value",
        "val": _TYPES[value.type],
        "tensor": None if value.tensor is None else tensor_facts(value.tensor),
        "tensor_list": None
        if listed is None
        else {"type": "TensorList", "tensors": [tensor_facts(tensor) for tensor in listed]},
        "int_value": boxed("Int", "int_val", value.int_value),
        "float_value": boxed("Float", "float_val", value.float_value),
        "double_value": boxed("Double", "double_val", value.double_value),
        "bool_value": boxed("Bool", "bool_val", value.bool_value),
        "output": boxed("Bool", "bool_val", value.output),
    }


def event_facts(event: etdump.AnyEvent) -> dict[str, Any]:
    facts: dict[str, Any] = {"type": "Event"}
    facts |= dict.fromkeys(("profile_event", "allocation_event", "debug_event"))
    if isinstance(event, AllocationEvent):
        facts["allocation_event"] = {
            "type": "AllocationEvent",
            "allocator_id": event.allocator_id,
            "allocation_size": event.allocation_size,
        }
        return facts
    assert isinstance(event, ProfileEvent | DebugEvent)
    ids = {
        "name": event.name,
        "chain_index": event.chain_index,
        "instruction_id": event.instruction_id,
        "delegate_debug_id_int": event.delegate_id_int,
        "delegate_debug_id_str": event.delegate_id_str,
    }
    if isinstance(event, DebugEvent):
        assert event.value is not None
        value = value_facts(event.value)
        ids["chain_index"] %= 2**64
        facts["debug_event"] = {"type": "DebugEvent", **ids, "debug_entry": value}
    else:
        size = None if event.metadata is None else len(event.metadata)
        times = {"start_time": event.start_time, "end_time": event.end_time}
        facts["profile_event"] = {"type": "ProfileEvent", **ids, "metadata": size, **times}
    return facts


def dump_facts(dump: etdump.ETDump) -> list[dict[str, Any]]:
    return [
        {
            "type": "RunData",
            "name": run.name,
            "bundled_input_index": run.bundled_input_index,
            "allocators": [{"type": "Allocator", "name": name} for name in run.allocators],
            "events": [event_facts(event) for event in run.events],
        }
        for run in dump.run_data
    ]


def stock_facts(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The stock answer in our words: metadata as its length, element types left out.

    Its JSON writer puts element types as names, which are compared by the debug data.
    """
    runs = answer["run_data"]
    for entry in runs:
        entry["allocators"] = entry["allocators"] or []
        entry["events"] = entry["events"] or []
        for event in entry["events"]:
            profile = event["profile_event"]
            if profile is not None:
                blob = profile.pop("delegate_debug_metadata")
                profile["metadata"] = None if blob is None else blob["nbytes"]
            if event["debug_event"] is not None:
                strip_types(event["debug_event"]["debug_entry"])
    return runs


def strip_types(value: dict[str, Any]) -> None:
    listed = value["tensor_list"]["tensors"] if value["tensor_list"] else []
    for tensor in (value["tensor"], *listed):
        if tensor is not None:
            assert isinstance(tensor.pop("scalar_type"), str)


@pytest.mark.parametrize("folder", WHOLE, ids=lambda folder: str(folder.relative_to(DATA)))
def test_decode_of_stock_trace_gives_what_the_stock_reader_gives(
    folder: Path, oracle: Oracle
) -> None:
    path = folder / "run.etdp"
    ours = etdump.decode(path.read_bytes(), file=str(path))
    assert ours.issues == ()
    assert dump_facts(ours) == stock_facts(oracle.ask("etdump", path=path))


@pytest.mark.parametrize("folder", WHOLE, ids=lambda folder: str(folder.relative_to(DATA)))
def test_encode_of_stock_trace_gives_a_trace_that_reads_the_same(
    folder: Path, oracle: Oracle, tmp_path: Path
) -> None:
    path = folder / "run.etdp"
    again = tmp_path / "run.etdp"
    again.write_bytes(etdump.encode(etdump.decode(path.read_bytes())))
    theirs = stock_facts(oracle.ask("etdump", path=again))
    assert theirs == stock_facts(oracle.ask("etdump", path=path))


@pytest.mark.parametrize("name", ["convnet_xnnpack", "mm_portable", "tinygpt_xnnpack"])
def test_inspector_of_rewritten_trace_lists_identical_events(
    name: str, corpus: Path, oracle: Oracle, tmp_path: Path
) -> None:
    folder = corpus / "v1.5.1" / name
    again = tmp_path / "run.etdp"
    again.write_bytes(etdump.encode(etdump.decode((folder / "run.etdp").read_bytes())))
    rest = {"etrecord": folder / "model.etrecord", "debug_buffer": folder / "run.debug"}
    theirs = oracle.ask("inspector", etdump=again, **rest)
    assert "error" not in theirs
    assert theirs == oracle.ask("inspector", etdump=folder / "run.etdp", **rest)


@pytest.mark.parametrize("prefixed", [True, False])
def test_encode_of_every_kind_of_event_is_read_by_the_stock_reader(
    prefixed: bool, oracle: Oracle, tmp_path: Path
) -> None:
    events: list[etdump.AnyEvent] = [
        ProfileEvent("op", 0, 3, 10, 20),
        ProfileEvent(None, 0, 3, 2**63, 2**64 - 1, 7, None, b"\x00\x01\x02"),
        ProfileEvent("", -1, 0, 5, 5, -1, "id", b""),
        AllocationEvent(1, 2**40),
        *(DebugEvent(value, -1, 0, "n", -1, "x") for value in every_value()),
        *(DebugEvent(value, 0, 4) for value in every_value()),
    ]
    made = dump(
        [run("Default", []), run("Execute", events, bundled_input_index=4, allocators=("a", "b"))],
        size_prefixed=prefixed,
    )
    path = tmp_path / "made.etdp"
    path.write_bytes(etdump.encode(made))
    assert stock_facts(oracle.ask("etdump", path=path)) == dump_facts(made)


@pytest.mark.parametrize(
    "path", [BROKEN / "run.etdp", DATA / "damaged" / "half_precision_debug.etdp"]
)
def test_trace_that_the_stock_runtime_wrote_broken_is_whole_for_stock_readers_once_rewritten(
    path: Path, oracle: Oracle, tmp_path: Path
) -> None:
    assert "error" in oracle.ask("etdump", path=path)
    ours = etdump.decode(path.read_bytes(), file=str(path))
    again = tmp_path / "run.etdp"
    again.write_bytes(etdump.encode(ours))
    assert stock_facts(oracle.ask("etdump", path=again)) == dump_facts(ours)


def written_as_json(data: bytes, folder: Path, *options: str) -> bytes:
    schema = stock_folder() / "devtools" / "etdump" / "etdump_schema_flatcc.fbs"
    return to_json(schema, data, folder, "--size-prefixed", *options)


@pytest.mark.parametrize("options", [(), ("--strict-json",), ("--defaults-json",)])
@pytest.mark.parametrize("folder", WHOLE, ids=lambda folder: folder.name)
def test_json_of_a_trace_by_flatc_opens_like_the_trace(
    folder: Path, options: tuple[str, ...], tmp_path: Path
) -> None:
    data = (folder / "run.etdp").read_bytes()
    read = etdump.decode(data)
    prefixed = data if read.size_prefixed else etdump.encode(dump(read.run_data))
    text = written_as_json(prefixed, tmp_path, *options)
    assert etdump.sniff(text[:256])
    assert etdump.decode(text).run_data == read.run_data


@pytest.mark.parametrize("options", [(), ("--strict-json",)])
def test_json_of_every_kind_of_event_opens(options: tuple[str, ...], tmp_path: Path) -> None:
    values = [DebugEvent(value, instruction_id=i) for i, value in enumerate(every_value())]
    texts = ProfileEvent(
        'a "b" \\ nan: inf, true { \u2192', -1, 3, 2**64 - 1, 7, 9, "id", b"\0\xff"
    )
    made = dump([run("one", [texts, AllocationEvent(1, 2**40), *values, None])])
    text = written_as_json(etdump.encode(made), tmp_path, *options)
    assert etdump.decode(text).run_data == made.run_data
