"""Every path, module, file, line and weight of the originals is looked for in every copy."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.export.anonymise import anonymise
from inspector.files.payloads import delegate_payload
from inspector.files.session import Session
from inspector.numerics.tensors import stored_tensors
from schema.errors import FormatError
from schema.etrecord import RecordFile, tensors
from tests.inspector.cli_runs import LONE, SESSIONS
from tests.inspector.sessions import label, session

pytestmark = pytest.mark.slow

ALL = [*SESSIONS, *LONE]
_FRAME = re.compile(r'\s*File "([^"]*)", line \d+, in (.*)')
_PATH = re.compile(rb"(?<![\w.])/(?:[\w.@+-]+/)+[\w.@+-]+")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_GENERATED = re.compile(r"_?lifted_tensor_constant\d+|<eval_with_key>.*|lifted_\w+|\W*|\d+")
# Words of the formats and of torch itself; what a tensor is for, and members of every record.
_LIBRARY = (
    "forward weight bias scale state dict running_mean running_var num_batches_tracked zero_point"
    " values value constants name names input output graph module"
)
WINDOW, LEAST_DIFFERENT = 16, 6


def _unpacked(data: bytes) -> Iterator[bytes]:
    """Yield a file and, of an archive, what is in it."""
    yield data
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield from _unpacked(archive.read(name))


def _copy(path: Path) -> bytes:
    return b"\0".join(part for file in anonymise(session(path)) for part in _unpacked(file.data))


def _dicts(record: RecordFile) -> Iterator[dict[str, Any]]:
    """Yield every object of the JSON of a record's graphs, texts that are JSON included."""
    stack: list[Any] = [json.loads(bytes(record.read(name))) for name in record.program_names]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += node
        elif isinstance(node, dict):
            yield node
            stack += node.values()
        elif isinstance(node, str) and node[:2] in ('{"', "[{"):
            stack.append(json.loads(node))


def _module_types(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for entry in str(node.get("nn_module_stack") or "").split(";"):
        parts = entry.split(",")
        if len(parts) == 3:
            yield parts[1], parts[2]


def _secret_texts(one: Session) -> set[str]:
    """Return module paths and classes, tensor names, and files, functions and lines of source."""
    found: set[str] = set()
    for node in _dicts(one.record) if one.record is not None else ():
        found |= {str(node.get(key) or "") for key in ("parameter_name", "buffer_name")}
        found |= set(node.get("forward_arg_names") or ())  # of the method, as its inputs
        for path, kind in _module_types(node):
            found |= {path, *path.split("."), *(() if kind.startswith("torch.") else (kind,))}
        for line in str(node.get("stack_trace") or "").splitlines():
            frame = _FRAME.match(line)
            if frame is None:
                found.add(line.strip())
            elif "site-packages" not in frame[1]:
                found |= {frame[1], frame[2], Path(frame[1]).stem}
    for path in {data for file in one.files for data in _PATH.findall(bytes(file.data))}:
        found.add(path.decode())
    return {text for text in found if len(text) > 2 and not _GENERATED.fullmatch(text)}


def _library_words(one: Session) -> set[str]:
    """Return the words of operators, torch modules, JSON keys and methods, which stay."""
    texts = [_LIBRARY, *one.methods]
    for node in _dicts(one.record) if one.record is not None else ():
        texts += [*node, str(node.get("target") or "")]
        texts += [kind for _, kind in _module_types(node) if kind.startswith("torch.")]
    words = {text for text in texts if " " not in text}
    return words | {word for text in texts for word in (*_WORD.findall(text), *text.split(" "))}


def _contents(one: Session) -> Iterator[memoryview]:
    """Yield the bytes of every tensor: weights, states, payload constants, inputs and outputs."""
    for method in one.methods:
        found = (tensor.data for tensor in stored_tensors(one, method))
        yield from (data for data in found if data is not None)
    for program in one.programs:
        yield from program.named_data_map().values()
        for plan in program.plans:
            for index in range(len(plan.delegates)):
                payload = delegate_payload(program, plan, index, one.external)
                yield from (item.data for item in payload.constants if item.data is not None)
    for data in one.external:
        yield from (entry.data for entry in data.entries)
    if one.debug_buffer is not None:
        yield one.debug_buffer.data
    yield from _recorded(one.record) if one.record is not None else ()


def _recorded(record: RecordFile) -> Iterator[memoryview]:
    for member in record.members:
        try:
            found = list(tensors(record.saved(member.name).value))
        except FormatError:
            continue
        yield from (tensor.data for tensor in found if tensor.data is not None)


def _windows(data: memoryview) -> Iterator[bytes]:
    """Yield runs of bytes that cannot be anywhere by chance: from the start, middle and end."""
    for start in (0, len(data) // 2 & ~3, len(data) - WINDOW):
        run = bytes(data[start : start + WINDOW]) if start >= 0 else b""
        if len(run) == WINDOW and len(set(run)) >= LEAST_DIFFERENT:
            yield run


@pytest.mark.parametrize("path", ALL, ids=label)
def test_copy_holds_no_path_name_or_line_of_the_original(path: Path) -> None:
    one, told = session(path), _copy(path)
    assert _PATH.findall(told) == []
    for secret in _secret_texts(one) - _library_words(one):
        spelled = re.escape(secret.encode())
        assert re.search(rb"(?<![A-Za-z0-9])" + spelled + rb"(?![A-Za-z0-9])", told) is None, secret


@pytest.mark.parametrize("path", ALL, ids=label)
def test_copy_holds_no_weight_of_the_original(path: Path) -> None:
    told = _copy(path)
    for data in _contents(session(path)):
        for run in _windows(data):
            assert run not in told, run.hex(" ")


def test_secrets_and_weights_are_found_in_the_originals() -> None:
    names = weights = 0
    for path in SESSIONS:
        one = session(path)
        told = b"\0".join(part for file in one.files for part in _unpacked(bytes(file.data)))
        secrets = _secret_texts(one) - _library_words(one)
        names += sum(secret.encode() in told for secret in secrets)
        weights += sum(run in told for data in _contents(one) for run in _windows(data))
    assert names > 200
    assert weights > 200
