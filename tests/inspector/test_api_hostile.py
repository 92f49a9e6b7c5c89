"""Damaged files through the API: an error of one sentence or a partial answer, nothing else."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest

from inspector import Inspector, RebuildError, generate_model_size_information, parse_etrecord
from inspector.compat.devtools.etrecord import opened
from schema import etrecord
from schema.errors import FormatError
from tests.fuzz.mutate import mutant
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.slow

SESSIONS = ("corpus/v1.5.1/convnet_xnnpack", "corpus/special/control_flow", "extra/many_outputs")
MEMBER = "edge_dialect_exported_program/forward"


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("name", ["run.etdp", "model.etrecord", "model.pte", "run.debug"])
def test_inspector_on_damaged_files_fails_cleanly_or_shows_what_it_can(
    session: str, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    folder = DATA / session
    files = {kind: folder / kind for kind in ("run.etdp", "model.etrecord", "run.debug")}
    opened = 0
    for seed in range(40):
        damaged = tmp_path / name
        damaged.write_bytes(mutant((folder / name).read_bytes(), seed)[1])
        chosen = {**files, name: damaged}
        try:
            inspector = Inspector(
                etdump_path=chosen["run.etdp"],
                etrecord=chosen["model.etrecord"],
                debug_buffer_path=chosen["run.debug"],
                program=chosen.get("model.pte"),
            )
        except FormatError:
            continue
        except RuntimeError:  # the documented error of a record that is none
            assert name == "model.etrecord"
            continue
        opened += 1
        inspector.print_data_tabular(io.StringIO(), include_delegate_debug_data=True)
        for block in inspector.event_blocks:
            block.run_output.arrays()
            for event in block.events:
                event.debug_data.arrays()
    assert opened > 5


@pytest.mark.parametrize(
    "data",
    [b"{}", b"[]", b"not JSON", b'{"graph_module": {"graph": 3}}', b"[" * 100_000, b"\xff\xfe"],
)
def test_program_of_damaged_json_says_why_it_cannot_be_rebuilt(data: bytes) -> None:
    pytest.importorskip("torch")
    path = DATA / "corpus" / "v1.5.1" / "mm_portable" / "model.etrecord"
    artifact = etrecord.replace_member(parse_etrecord(path).artifact, MEMBER, data)
    with pytest.raises((RebuildError, FormatError)):
        _ = opened(artifact).edge_dialect_program


def test_weights_with_other_objects_are_not_unpickled(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    saved = io.BytesIO()
    torch.save({"weight": Path("a")}, saved)
    path = DATA / "corpus" / "v1.5.1" / "mm_portable" / "model.etrecord"
    artifact = parse_etrecord(path).artifact
    changed = etrecord.replace_member(artifact, f"{MEMBER}_state_dict", saved.getvalue())
    with pytest.raises(RebuildError, match=r"weights in .*state_dict cannot be loaded"):
        _ = opened(changed).edge_dialect_program


def test_targets_that_are_no_operators_are_not_looked_up() -> None:
    pytest.importorskip("torch")
    path = DATA / "corpus" / "v1.5.1" / "mm_portable" / "model.etrecord"
    artifact = parse_etrecord(path).artifact
    data = bytes(artifact.read(MEMBER)).replace(
        b"executorch.exir.dialects.edge.ops.aten.mm.default", b"os.system"
    )
    changed = etrecord.replace_member(artifact, MEMBER, data)
    with pytest.raises(RebuildError, match=r"torch has no operator os\.system"):
        _ = opened(changed).edge_dialect_program


@pytest.mark.parametrize("name", ["model.pte", "model.etrecord"])
def test_size_of_damaged_files_fails_cleanly_or_adds_up(name: str, tmp_path: Path) -> None:
    folder = DATA / SESSIONS[0]
    for seed in range(60):
        path = tmp_path / name
        path.write_bytes(mutant((folder / name).read_bytes(), seed)[1])
        try:
            given = path if name.endswith(".pte") else parse_etrecord(path)
            found = generate_model_size_information(given)
        except (FormatError, RuntimeError):
            continue
        sizes = [row["num_bytes"] for row in found["tensor_data"]]
        assert sum(sizes) == found["overview"]["total_tensor_data_size"]
