"""Anonymised copies: nothing of the model's content is left, every number but values is equal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inspector.check.session import check_session
from inspector.export.anonymise import anonymise
from inspector.export.anonymise_names import Names, is_path_like, without_paths
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.graph.delegation import analyse_delegation
from inspector.memory.plan import analyse_memory
from inspector.numerics.tensors import stored_tensors
from inspector.profile.methods import analyse_profile
from inspector.size.files import session_sizes
from schema.bundled import BundledFile
from schema.etrecord import RecordFile, tensors
from schema.program import model as m
from tests.inspector.cli_runs import LONE, SESSIONS, run, valid
from tests.inspector.sessions import DATA, label, session

pytestmark = pytest.mark.slow

ALL = [*SESSIONS, *LONE]


def _copy(path: Path, folder: Path) -> Session:
    for file in anonymise(session(path)):
        (folder / file.name).write_bytes(file.data)
    return load_session([folder / file.name for file in anonymise(session(path))])


@pytest.mark.parametrize("path", ALL, ids=label)
def test_copy_keeps_every_number(path: Path, tmp_path: Path) -> None:
    old, new = session(path), _copy(path, tmp_path)
    assert [file.kind for file in new.files] == [file.kind for file in old.files]
    assert check_session(new).verdict == check_session(old).verdict
    assert _sizes(new) == _sizes(old)
    assert _delegation(new) == _delegation(old)
    assert _memory(new) == _memory(old)
    assert _times(new) == _times(old)


def _sizes(one: Session) -> list[object]:
    found: list[object] = []
    for sized in session_sizes(one):
        if sized.file.kind in ("pte", "ptd", "bpte"):
            assert sized.size is not None
            found.append([(part.kind, part.offset, part.nbytes) for part in sized.size.parts])
    return found


def _delegation(one: Session) -> list[object]:
    return [
        (
            entry.method,
            entry.counting,
            entry.summary,
            entry.by_operator,
            entry.compute_delegated,
            entry.compute_non_delegated,
            entry.nested_non_delegated,
            [
                (d.backend_id, d.nbytes, d.named_bytes, len(d.nodes), d.calls)
                for d in entry.delegates
            ],
        )
        for entry in analyse_delegation(one)
    ]


def _memory(one: Session) -> list[object]:
    program = one.program
    return [
        (
            arena.planned_bytes,
            arena.lower_bound_bytes,
            arena.live_bytes.tolist(),
            [(v.offset, v.nbytes, v.first, v.last, v.operator, v.role) for v in arena.values],
        )
        for plan in (program.plans if program is not None else ())
        for arena in analyse_memory(program, plan.name).arenas
    ]


def _times(one: Session) -> list[object]:
    return [
        (
            row.event_name,
            row.op_types,
            row.instruction_id,
            row.delegate_debug_id,
            row.delegate_backend_name,
            row.link.grade,
            row.link.handles,
            row.raw_ms.tolist() if row.raw_ms is not None else None,
        )
        for row in analyse_profile(one).rows
    ]


@pytest.mark.parametrize("path", ALL, ids=label)
def test_copy_has_no_names_paths_or_values(path: Path, tmp_path: Path) -> None:
    new = _copy(path, tmp_path)
    told = b"".join(bytes(file.data) for file in new.files)
    for secret in _secrets(session(path)):
        assert re.search(rb"(?<![\w.])" + re.escape(secret) + rb"(?![\w.])", told) is None, secret
    for method in new.methods:
        for tensor in stored_tensors(new, method):
            assert tensor.data is None or not any(tensor.data)
    if new.debug_buffer is not None:
        assert not any(new.debug_buffer.data)
    for data in new.external:
        assert not any(any(entry.data) for entry in data.entries)
    if new.record is not None:
        _assert_blank(new.record)
    if isinstance(new.bundled, BundledFile):
        for suite in new.bundled.method_test_suites:
            for case in suite.test_cases:
                inputs = (getattr(one.val, "data", b"") for one in case.inputs)
                assert not any(any(data) for data in inputs)


def _assert_blank(record: RecordFile) -> None:
    kept = {member.name for member in record.members}
    assert not kept & {"reference_outputs", "representative_inputs"}
    for name in record.program_names:
        assert not len(record.read(f"{name}_example_inputs"))
        for suffix in ("state_dict", "constants"):
            saved = record.saved(f"{name}_{suffix}")
            assert saved.issues == ()
            assert not any(any(tensor.data or b"") for tensor in tensors(saved.value))


def _secrets(one: Session) -> set[bytes]:
    """Return dotted names of tensors and modules, and the source files of the model."""
    found: set[str] = set()
    for program in one.programs:
        for plan in program.plans:
            for value in plan.values:
                tensor = value.val
                if isinstance(tensor, m.Tensor) and tensor.extra_tensor_info is not None:
                    found.add(tensor.extra_tensor_info.fully_qualified_name)
    for data in one.external:
        found |= {entry.key for entry in data.entries if entry.layout is not None}
    for row in analyse_profile(one).rows:
        found |= set(row.module_hierarchy.values())
        for trace in row.stack_traces.values():
            files = re.findall(r'File "([^"]*)"', trace)
            found |= {file for file in files if "site-packages" not in file}
    dull = re.compile(r"[\d.]*|(weight|bias|scale|\d|\.|running_mean|running_var)*")
    named = {name for name in found if "." in name and name[0] != "<" and not dull.fullmatch(name)}
    return {name.encode() for name in named}


def test_secrets_are_looked_for() -> None:
    assert b"stem.0" in _secrets(session(DATA / "corpus/v1.5.1/convnet_xnnpack"))
    assert b"zoo/models.py" in _secrets(session(DATA / "corpus/v1.5.1/convnet_xnnpack"))
    assert any(b"weight" in name for name in _secrets(session(DATA / "extra/external_weights")))


def test_folder_of_a_copy_opens_whole(tmp_path: Path) -> None:
    folder = DATA / "corpus/v1.5.1/convnet_xnnpack"
    target = tmp_path / "copy"
    answer = run("export", folder, "--as", "anonymised", "--to", target, "--format", "json")
    assert answer.code == 0
    data = valid(answer, "export")["data"]
    assert data["verdict"] == data["original_verdict"] == "belong"
    assert {file["path"] for file in data["files"]} == {path.name for path in target.iterdir()}
    assert len(load_session([target]).files) == len(session(folder).files)


def test_copy_is_not_written_over_files_or_the_original(tmp_path: Path) -> None:
    source = tmp_path / "model.pte"
    source.write_bytes((DATA / "extra/kv_cache/model.pte").read_bytes())
    before = source.read_bytes()
    for more in ((), ("--force",)):
        answer = run("export", source, "--as", "anonymised", "--to", tmp_path, *more)
        assert answer.code == 2
        assert source.read_bytes() == before
    assert run("export", source, "--as", "anonymised").code == 2


@pytest.mark.parametrize(
    "name", ["layers.0.attention.wq.weight", "a", "a.b", "ünïcode.läyer", "x" * 300, "_p.q_"]
)
def test_names_keep_length_and_are_consistent(name: str) -> None:
    names = Names()
    first = names.qualified(name)
    assert first == names.qualified(name) != name
    assert len(first.encode()) == len(name.encode())
    assert first.count(".") == name.count(".")
    assert first not in (names.qualified("another.one"), names.qualified(f"{name}z"))


def test_names_of_one_length_never_meet() -> None:
    names = Names()
    made = [names.qualified(f"{a}{b}.weight") for a in "abcdefghij" for b in "0123456789_xyz"]
    assert len(set(made)) == len(made)


@pytest.mark.parametrize(
    ("text", "is_path"),
    [
        ("/home/someone/model.py", True),
        ("C:\\Users\\someone\\model.py", True),
        ("~/code/model.py", True),
        ("\\\\server\\share\\model", True),
        ("--accelerator-config=ethos-u55-128", False),
        ("aten/conv.default", False),
        ("TOSA-1.0+FP", False),
        ("", False),
    ],
)
def test_paths_are_told_from_other_text(text: str, is_path: bool) -> None:
    assert is_path_like(text) is is_path
    blank = without_paths(f"before={text} ".encode())
    assert len(blank) == len(f"before={text} ".encode())
    assert (b"someone" in blank) is False


def test_traceback_keeps_lines_and_drops_code() -> None:
    trace = (
        'File "/home/me/net.py", line 7, in secret_block\n    return self.secret(x)\n'
        '  File "/opt/py/site-packages/torch/nn/modules/conv.py", line 9, in forward\n    y = 1'
    )
    found = Names().traceback(trace)
    assert "secret" not in found
    assert "/home" not in found
    assert "/opt" not in found
    assert "line 7" in found
    assert "site-packages/torch/nn/modules/conv.py" in found
    assert "y = 1" not in found
