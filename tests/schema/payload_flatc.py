"""The stock wheel's own schema compiler: an independent reader and writer of flatbuffers."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from pathlib import Path
from typing import Any


def stock_folder() -> Path:
    """Return the folder of the stock package without importing it."""
    found = importlib.util.find_spec("executorch")
    assert found is not None
    assert found.submodule_search_locations
    return Path(next(iter(found.submodule_search_locations)))


def schema_path(backend: str) -> Path:
    """Return a schema of the wheel, as in ``xnnpack/serialization/schema.fbs``."""
    return stock_folder() / "backends" / backend


def read(schema: Path, flatbuffer: bytes, folder: Path) -> dict[str, Any]:
    """Return a flatbuffer as flatc prints it, defaults filled in."""
    printed = to_json(schema, flatbuffer, folder, "--strict-json", "--defaults-json")
    text = printed.decode("utf-8")
    return json.loads(re.sub(r"(?<=[ :\[])(-?)inf\b", r"\1Infinity", text))


def to_json(schema: Path, flatbuffer: bytes, folder: Path, *options: str) -> bytes:
    """Return the JSON that flatc prints of a flatbuffer."""
    source = folder / "blob.bin"
    source.write_bytes(flatbuffer)
    _flatc("--json", *options, "--raw-binary", schema, "--", source)
    return (folder / "blob.json").read_bytes()


def write(schema: Path, content: dict[str, Any], folder: Path) -> bytes:
    """Return the flatbuffer that flatc makes of a JSON object."""
    source = folder / "blob.json"
    source.write_text(json.dumps(content), encoding="utf-8")
    _flatc("-b", schema, source)
    return next(path for path in folder.glob("blob.*") if path.suffix != ".json").read_bytes()


def reflection(schema: Path, folder: Path) -> bytes:
    """Return a schema as the flatbuffer that reflection.fbs describes."""
    _flatc("-b", "--schema", schema, target=folder)
    return (folder / schema.with_suffix(".bfbs").name).read_bytes()


def _flatc(*arguments: Any, target: Path | None = None) -> None:
    target = target or Path(arguments[-1]).parent
    program = stock_folder() / "data" / "bin" / "flatc"
    command = [str(program), "-o", str(target), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def union_members(schema: Path, name: str) -> list[str]:
    """Return the member names of a union, in tag order without NONE."""
    return [row.split(":")[0].strip() for row in _body(schema, "union", name)]


def enum_values(schema: Path, name: str) -> dict[str, int]:
    """Return the numbers of an enum by name."""
    found: dict[str, int] = {}
    following = 0
    for row in _body(schema, "enum", name):
        key, _, number = row.partition("=")
        following = int(number) if number else following
        found[key.strip()] = following
        following += 1
    return found


def _body(schema: Path, kind: str, name: str) -> list[str]:
    text = re.sub(r"//[^\n]*", "", schema.read_text(encoding="utf-8"))
    match = re.search(rf"{kind} {name}\b[^{{]*{{(.*?)}}", text, re.DOTALL)
    assert match is not None, name
    return [row.strip() for row in match[1].split(",") if row.strip()]
