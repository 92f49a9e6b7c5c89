"""Recorded graphs run as they were read, beside the same programs read and run by torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from compiler import to_edge_transform_and_lower
from inspector.compat.devtools.etrecord import ETRecord, parse_etrecord
from inspector.compat.numeric_gap import recorded_values as module
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.numerics.replay import references
from inspector.numerics.replay.references import plain_graph
from inspector.rebuild.serde_rewrite import RebuildError
from tests.compiler.compare import exported, flat, module_of
from tests.compiler.programs import EVERY
from tests.inspector.sessions import folders, label

pytestmark = pytest.mark.slow

RECORDS = folders("model.etrecord")
# What the records of the corpus do not have: recurrence, attention, layouts, symbols, state, types.
FURTHER = (
    *("bool_output", "channels_last_mixed", "dynamic_shapes", "gru", "integers", "kv_cache"),
    *("mixed_types", "transformer"),
)


def values(session: Session, record: ETRecord, method: str, wanted: str) -> Any:
    """Return what the nodes make, None where the record does not let anybody know."""
    try:
        return module.recorded_values(session, record, method, wanted, best_effort=True).nodes
    except (ValueError, RebuildError):
        return None


def both_ways(session: Session, record: ETRecord, method: str, wanted: str) -> tuple[Any, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(references, "plain_graph", lambda *_: None)
        long_way = values(session, record, method, wanted)
    return values(session, record, method, wanted), long_way


def assert_same(found: Any, wanted: Any) -> None:
    assert list(found) == list(wanted)
    for handle, nodes in wanted.items():
        for one, other in zip(found[handle], nodes, strict=True):
            assert (one.name, one.stack_trace) == (other.name, other.stack_trace)
            assert_equal(one.value, other.value)


def assert_equal(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, torch.Tensor):
        assert (one.dtype, one.shape, one.stride()) == (other.dtype, other.shape, other.stride())
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
    elif isinstance(one, list):
        assert len(one) == len(other)
        for each, another in zip(one, other, strict=True):
            assert_equal(each, another)
    else:
        assert one == other


@pytest.mark.parametrize("folder", RECORDS, ids=label)
def test_records_run_plainly_and_by_torch_make_the_same_values(folder: Path) -> None:
    compare(load_session([str(folder)]), parse_etrecord(folder / "model.etrecord"))


def compare(session: Session, record: ETRecord) -> None:
    for method in record.artifact.methods:
        for wanted in (module.EXPORTED, module.EDGE):
            one, other = both_ways(session, record, method, wanted)
            assert (one is None) == (other is None)
            if other is not None:
                assert_same(one, other)


def test_most_records_hold_plain_graphs() -> None:
    members = [
        (record, member)
        for record in (parse_etrecord(folder / "model.etrecord").artifact for folder in RECORDS)
        for member in record.roles.edge.values()
    ]
    plain = [member for record, member in members if plain_graph(record, member) is not None]
    assert len(plain) >= len(members) / 2, f"{len(plain)} of {len(members)}"


@pytest.mark.parametrize("name", FURTHER)
def test_programs_run_plainly_and_by_torch_make_the_same_values(name: str, tmp_path: Path) -> None:
    sample = EVERY[name]
    manager = to_edge_transform_and_lower(
        exported(sample, module_of(sample)), generate_etrecord=True
    )
    record = manager.to_executorch().get_etrecord()
    record.update_representative_inputs([list(flat(sample.inputs))])
    record.save(tmp_path / "model.etrecord")
    session = load_session([str(tmp_path)])
    compare(session, parse_etrecord(tmp_path / "model.etrecord"))
