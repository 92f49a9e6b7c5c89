"""What this interpreter can be asked: its partitioners, a compile, a run."""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from inspector.toolchain.stock.lowering import NotWrittenError, emitted, lowered, planned, written
from inspector.toolchain.stock.package import StockError, part, version, versions
from inspector.toolchain.stock.partitioners import listed
from inspector.toolchain.stock.quantising import quantised
from inspector.toolchain.stock.running import ran
from inspector.worker.exporter import (
    AnswerError,
    Exported,
    exported,
    failure,
    sentence_of,
    tell_what_is_said,
    told,
)

Say = Callable[..., None]
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
VERDICTS = "verdicts.json"  # they may be many


class UnreadableError(Exception):
    """A source that the package or torch cannot read."""


def answer(asked: Mapping[str, Any], say: Say) -> int:
    """Answer a question; every way out but a crash is a message."""
    try:
        say("versions", **versions())
        result = _WORK[asked["do"]](asked, say)
    except UnreadableError as error:
        say("failed", **{**failure(error), "sentence": str(error), "blame": "unreadable"})
        return 1
    except StockError as error:
        say("failed", **{**failure(error), "sentence": str(error), "blame": "usage"})
        return 1
    except NotWrittenError as error:
        say("failed", **{**failure(error), "sentence": str(error)})
        return 1
    except OSError as error:
        if error.errno not in _FULL:
            say("failed", **failure(error))
        else:
            what = error.filename or "a file of the package"
            sentence = f"{what} cannot be written: {error.strerror}"
            say("failed", **{**failure(error), "sentence": sentence})
        return 1
    except BaseException as error:  # noqa: BLE001 - whatever the package and the user's code raise
        say("failed", **failure(error))
        return 1
    say("finished", result=result)
    return 0


def _list(_asked: Mapping[str, Any], _say: Say) -> dict[str, Any]:
    backends: list[str] = []
    with contextlib.suppress(Exception):
        backends = list(part("extension.pybindings.portable_lib")._get_registered_backend_names())
    return {"partitioners": list(listed()), "backends": backends}


def _compile(asked: Mapping[str, Any], say: Say) -> dict[str, Any]:
    folder, job = Path(asked["folder"]), asked["job"]
    tell_what_is_said(say)
    with told(say, "load executorch"):
        part("exir")
    source = _source(job, say)
    programs = dict(source.programs)
    if job["quantising"]["mode"]:
        for method, program in programs.items():
            with told(say, "quantize", method):
                programs[method] = quantised(program, job["quantising"], method)
    edge, found = lowered(programs, source.constants, job, say)
    program = emitted(edge, job, say)
    written(program, folder, say)
    verdicts = {method: one.verdicts for method, one in found.items()}
    (folder / VERDICTS).write_text(json.dumps(verdicts), "utf-8")
    return {
        "methods": sorted(programs),
        "constant_methods": sorted(source.constants),
        "memory": planned(program, job["memory_planner"]),
        "partitioned": bool(job["partitioners"]),
    }


def _source(job: Mapping[str, Any], say: Say) -> Exported:
    path, function = job["source"]["path"], job["source"]["function"]
    methods = tuple(job["methods"])
    if function:
        return exported(path, function, methods, say)
    with told(say, "load"):
        return _stored(path, methods)


def _stored(path: str, methods: tuple[str, ...]) -> Exported:
    """Return the program of a file, or of a record."""
    other = [name for name in methods if name != "forward"]
    if other:
        raise AnswerError(f"no method {other[0]!r}; executorch takes forward from a file")
    try:
        if path.endswith(".pt2"):
            return Exported({"forward": torch.export.load(path)}, {})
        found = part("devtools.etrecord").parse_etrecord(path).exported_program
    except OSError:
        raise
    except Exception as error:
        words = f"{path}: executorch {version()} cannot read it: {sentence_of(error)}"
        raise UnreadableError(words) from error
    if found is None:
        raise UnreadableError(f"{path}: expected a record with its exported program, found none")
    return Exported({"forward": found}, {})


_WORK: dict[str, Callable[[Mapping[str, Any], Say], dict[str, Any]]] = {
    "list": _list,
    "compile": _compile,
    "run": ran,
}
