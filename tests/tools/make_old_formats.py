"""Write files as old releases laid them out: python -m tests.tools.make_old_formats tests/data/old.

The content comes from the corpus; stock ExecuTorch's own schemas and flatc write the tables, and
what no current writer writes any more (headers, the first .ptd layout) is put together by hand.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import executorch
from executorch.exir._serialize._flatbuffer_program import _program_to_flatbuffer
from executorch.exir._serialize._program import (
    PTEFile,
    deserialize_pte_binary,
    serialize_pte_binary,
)
from executorch.exir.schema import (
    BackendDelegateDataReference,
    BackendDelegateInlineData,
    DataLocation,
    SubsegmentOffsets,
)

from tests.tools.old_data_file import old_data_file

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "data" / "corpus"
EXTRA = ROOT / "tests" / "data" / "extra"
STOCK = Path(executorch.__path__[0])
XNNPACK_SCHEMAS = STOCK / "backends" / "xnnpack" / "serialization"
ALIGNMENT = 16
NOT_IN_PAYLOAD = 2**64 - 1


def main() -> int:
    """Write every variant into the folder named on the command line."""
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    portable = (CORPUS / "v1.5.1" / "convnet_portable" / "model.pte").read_bytes()
    delegated = (CORPUS / "v1.5.1" / "convnet_xnnpack" / "model.pte").read_bytes()
    inline = with_payloads(delegated, "XN00")
    files = {
        "program_header24.pte": shortened_header(portable),
        "program_no_header.pte": without_segments(portable),
        "program_no_header_delegates.pte": without_segments(inline),
        "program_inline_xn00.pte": inline,
        "program_inline_xh00.pte": with_payloads(delegated, "XH00"),
        "data_0_6.ptd": old_data_file((EXTRA / "external_weights" / "model.ptd").read_bytes()),
    }
    for name, data in files.items():
        (out / name).write_bytes(data)
        print(name, len(data))  # noqa: T201
    return 0


def shortened_header(data: bytes) -> bytes:
    """Return a .pte whose extended header is the first one: 24 bytes, no size of the segments."""
    assert data[8:12] == b"eh00"
    assert struct.unpack_from("<I", data, 12) == (32,)
    return data[:12] + struct.pack("<I", 24) + data[16:32] + bytes(8) + data[40:]


def without_segments(data: bytes) -> bytes:
    """Return a .pte with constants and payloads inside the flatbuffer, and no extended header.

    Runtimes since 0.7 refuse it unless built for it; so only readers are tested with it.
    """
    program = deserialize_pte_binary(data).program
    program.segments = []
    program.constant_segment = SubsegmentOffsets(segment_index=0, offsets=[])
    program.mutable_data_segments = None
    program.named_data = []
    return bytes(_program_to_flatbuffer(program).data)


def with_payloads(data: bytes, style: str) -> bytes:
    """Return a .pte with XNNPACK payloads of `style` inline: XN00 bare, or XH00 with constants."""
    file = deserialize_pte_binary(data)
    named = _named_data(file)
    payloads = []
    for plan in file.program.execution_plan:
        for delegate in plan.delegates:
            old = file.program.backend_delegate_data[delegate.processed.index].data
            new = (bare_payload if style == "XN00" else headed_payload)(bytes(old), named)
            delegate.processed = BackendDelegateDataReference(DataLocation.INLINE, len(payloads))
            payloads.append(BackendDelegateInlineData(data=new))
    file.program.backend_delegate_data = payloads
    file.named_data = None
    return bytes(serialize_pte_binary(file, extract_delegate_segments=False))


def _named_data(file: PTEFile) -> dict[str, bytes]:
    store = file.named_data
    assert store is not None
    return {key: bytes(store.buffers[entry.buffer_index]) for key, entry in store.pte_data.items()}


def bare_payload(payload: bytes, named: dict[str, bytes]) -> bytes:
    """Return the payload as a bare XN00 flatbuffer with the constants in `constant_buffer`."""
    graph = _graph(payload)
    constants = graph.pop("constant_data")
    graph["constant_buffer"] = [{"storage": list(_constant(entry, named))} for entry in constants]
    return _flatc_encode(graph, XNNPACK_SCHEMAS / "runtime_schema.fbs")


def headed_payload(payload: bytes, named: dict[str, bytes]) -> bytes:
    """Return the payload with the constants behind the flatbuffer, as before named data."""
    graph = _graph(payload)
    area = b""
    for entry in graph["constant_data"]:
        data = _constant(entry, named)
        entry.pop("named_key")  # the runtime looks even an empty key up
        entry.update(offset=len(area), size=len(data))
        area += data + bytes(-len(data) % ALIGNMENT)
    table = _flatc_encode(graph, XNNPACK_SCHEMAS / "schema.fbs")
    padded = table + bytes(-len(table) % ALIGNMENT)
    sizes = struct.pack("<HIIIQ", 30, 32, len(table), 32 + len(padded), len(area))
    return bytes(4) + b"XH00" + sizes + bytes(2) + padded + area


def _constant(entry: dict[str, Any], named: dict[str, bytes]) -> bytes:
    key = entry.get("named_key", "")
    assert bool(key) == (entry.get("offset") == NOT_IN_PAYLOAD)
    return named[key] if key else b""


def _graph(payload: bytes) -> dict[str, Any]:
    assert payload[4:8] == b"XH00"
    offset, size = struct.unpack_from("<II", payload, 10)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.bin"
        path.write_bytes(payload[offset : offset + size])
        schema = str(XNNPACK_SCHEMAS / "schema.fbs")
        _flatc("--json", "--strict-json", "-o", folder, schema, "--", str(path))
        text = (Path(folder) / "graph.json").read_text("utf-8")
        return json.loads(re.sub(r"(: -?)inf\b", r"\1Infinity", text))


def _flatc_encode(graph: dict[str, Any], schema: Path) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.json"
        path.write_text(json.dumps(graph), encoding="utf-8")
        _flatc("--binary", "-o", folder, str(schema), str(path))
        return next(p for p in Path(folder).iterdir() if p.suffix != ".json").read_bytes()


def _flatc(*arguments: str) -> None:
    subprocess.run([str(STOCK / "data" / "bin" / "flatc"), *arguments], check=True)


if __name__ == "__main__":
    sys.exit(main())
