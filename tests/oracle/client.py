"""The stock tool in a child process, for tests: executorch never enters the test process."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.tools.line_server import LineServer


class Oracle:
    """Asks the stock tool and remembers the answers for the length of a test run.

    `oracle(folder)` is the whole session; `oracle.ask(verb, **arguments)` one question of
    `tests.oracle.server.verbs`. Answers are kept as files in `cache`, named by the question and
    the content of the files asked about, so that the workers of one run share them.
    """

    def __init__(self, cache: Path | None = None) -> None:
        self._cache = cache
        self.server = LineServer("tests.oracle.server")

    def __call__(self, folder: Path | str) -> dict[str, Any]:
        """Return all facts of a session folder (see tests.oracle.session)."""
        return self.ask("session", folder=folder)

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """Return the stock tool's answer; `{"error": …}` where it refused or its process died."""
        plain = {key: _absolute(value) for key, value in arguments.items() if value is not None}
        kept = None if self._cache is None else self._cache / f"{_key(verb, plain)}.json"
        if kept is not None and kept.exists():
            return json.loads(kept.read_text(encoding="utf-8"))
        answer = self._question(json.dumps({"verb": verb, "arguments": plain}))
        if kept is not None:
            _write(kept, answer)
        return json.loads(answer)

    def _question(self, line: str) -> str:
        answer = self.server.ask(line)
        if answer:
            return answer
        sentence = f"the stock tool's process ended with code {self.server.close()}"
        return json.dumps({"error": sentence, "error_type": "ProcessEnded"})

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.server.close()


def _absolute(value: Any) -> Any:
    return str(Path(value).absolute()) if isinstance(value, os.PathLike) else value


def _key(verb: str, arguments: dict[str, Any]) -> str:
    digest = hashlib.sha256(verb.encode())
    for name, value in sorted(arguments.items()):
        digest.update(f"\0{name}={value}".encode())
        for path in _files(Path(str(value))):
            digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(child for child in path.iterdir() if child.is_file())
    return [path] if path.is_file() else []


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, delete=False, suffix=".part"
    ) as stream:
        stream.write(text)
    os.replace(stream.name, path)
