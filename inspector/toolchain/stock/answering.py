"""Requests to this interpreter: its partitioners, a compile, a run."""

from __future__ import annotations

import copy
import errno
import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as _untyped_pytree

from compiler.backends.vendors.create import operators_of, options_of
from inspector.toolchain.stock import handing
from inspector.toolchain.stock.flows import flow_of, values_of
from inspector.toolchain.stock.lowering import StockWriteError, emitted, lowered, planners, written
from inspector.toolchain.stock.package import StockError, part, version, versions
from inspector.toolchain.stock.partitioners import check, listed
from inspector.toolchain.stock.quantize import quantize_handed, quantized_program
from inspector.toolchain.stock.running import ran, registered_backends
from inspector.worker.exporter import (
    AnswerError,
    Exported,
    exported,
    failure,
    redirect_logs,
    sentence_of,
    timed_stage,
)
from inspector.worker.libraries import lacking, load_libraries, unregistered
from inspector.worker.unquantized import warn_of_unquantized
from schema.vendors.table import vendor_called

Say = Callable[..., None]
_pytree: Any = _untyped_pytree
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
VERDICTS = "verdicts.json"  # they may be many


class UnreadableError(Exception):
    """A source that the package or torch cannot read."""


def answer(asked: Mapping[str, Any], notify: Say) -> int:
    """Answer a question; every way out but a crash is a message."""
    try:
        notify("versions", **versions())
        result = _WORK[asked["do"]](asked, notify)
    except UnreadableError as error:
        notify("failed", **{**failure(error), "sentence": str(error), "blame": "unreadable"})
        return 1
    except StockError as error:
        notify("failed", **{**failure(error), "sentence": str(error), "blame": "usage"})
        return 1
    except StockWriteError as error:
        notify("failed", **{**failure(error), "sentence": str(error)})
        return 1
    except OSError as error:
        if error.errno not in _FULL:
            notify("failed", **failure(error))
        else:
            what = error.filename or "a file of the package"
            sentence = f"{what} cannot be written: {error.strerror}"
            notify("failed", **{**failure(error), "sentence": sentence})
        return 1
    except BaseException as error:  # noqa: BLE001 - whatever the package and the user's code raise
        notify("failed", **failure(error))
        return 1
    notify("finished", result=result)
    return 0


def _list(_asked: Mapping[str, Any], _say: Say) -> dict[str, Any]:
    return {"partitioners": list(listed()), "backends": registered_backends()}


def _card(asked: Mapping[str, Any], _say: Say) -> dict[str, Any]:
    """Return what the tables of a vendor list."""
    vendor = vendor_called(asked["vendor"])
    assert vendor is not None  # the names are ours
    return {"options": options_of(vendor), "operators": operators_of(vendor)}


def _backends(_asked: Mapping[str, Any], _say: Say) -> dict[str, Any]:
    return {"backends": registered_backends()}


def _compile(asked: Mapping[str, Any], notify: Say) -> dict[str, Any]:
    folder, job, again = Path(asked["folder"]), asked["job"], bool(asked.get("again"))
    redirect_logs(notify)
    with timed_stage(notify, "load executorch"):
        part("exir")
        for each in job["partitioners"]:
            check(each)
    source = _KEPT.get(job, notify) if again else _read(job, notify)
    programs = dict(source.programs)
    edge, found = lowered(programs, source.constants, job, notify)
    program = emitted(edge, job, notify)
    written(program, folder, notify)
    verdicts = {method: one.verdicts for method, one in found.items()}
    (folder / VERDICTS).write_text(json.dumps(verdicts), "utf-8")
    return {
        "methods": sorted(programs),
        "constant_methods": sorted(source.constants),
        "planners": planners(program, job["memory_planner"]),
        "partitioned": bool(job["partitioners"]),
        "values": values_of(program) if flow_of(job) is not None else {},
        **({"origins": {method: one.origins for method, one in found.items()}} if again else {}),
    }


def _refer(asked: Mapping[str, Any], notify: Say) -> dict[str, Any]:
    """Write inputs of a method and the outputs of its exported program."""
    job, path = asked["job"], str(asked["inputs"])
    redirect_logs(notify)
    with timed_stage(notify, "load executorch"):
        part("exir")
    program = _KEPT.get(job, notify).programs[asked["method"]]
    example = program.example_inputs
    inputs: list[Any] = _pytree.tree_leaves(example)
    if path:
        inputs = torch.load(path, weights_only=True)
    elif example is None:
        raise AnswerError("the program was exported without inputs; --inputs names some")
    leaves, tree = _pytree.tree_flatten(example)
    args, kwargs = (tuple(inputs), {})
    if len(leaves) == len(inputs):
        args, kwargs = _pytree.tree_unflatten(list(inputs), tree)
    torch.save(inputs, asked["kept_inputs"])
    with torch.no_grad():
        outputs = _pytree.tree_leaves(program.module()(*args, **kwargs))
    torch.save(outputs, asked["outputs"])
    return {}


class _KeptPrograms:
    """Exported programs that are lowered repeatedly, so that all share the same weights."""

    def __init__(self) -> None:
        self._what = ""
        self._source: Exported | None = None

    def get(self, job: Mapping[str, Any], notify: Say) -> Exported:
        """Return the exported programs of a recipe, quantized; lowering may change them."""
        what = json.dumps([job["source"], job["methods"], job["quantising"]])
        if self._source is None or what != self._what:
            self._source, self._what = _read(job, notify), what
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch about its own classes
            programs = {name: copy.deepcopy(one) for name, one in self._source.programs.items()}
        return Exported(programs, self._source.constants)


_KEPT = _KeptPrograms()


def _read(job: Mapping[str, Any], notify: Say) -> Exported:
    """Return the exported programs of a recipe, quantized if requested."""
    source = _source(job, notify)
    programs = dict(source.programs)
    vendors = job.get("vendor_quantizer")
    if job["quantising"]["mode"] or vendors:
        for method, program in programs.items():
            with timed_stage(notify, "quantize", method):
                programs[method] = quantized_program(
                    program, job["quantising"], method, job["stock_quantizer"], vendors
                )
        warn_of_unquantized(source.programs, programs, notify)
    return Exported(programs, source.constants)


def _source(job: Mapping[str, Any], notify: Say) -> Exported:
    path, function = job["source"]["path"], job["source"]["function"]
    methods = tuple(job["methods"])
    load_libraries(job["libraries"])
    if function:
        return exported(path, function, methods, notify)
    with timed_stage(notify, "load"):
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
        missing = unregistered(path)
        why = lacking(missing) if missing else sentence_of(error)
        words = f"{path}: executorch {version()} cannot read it: {why}"
        raise UnreadableError(words) from error
    if found is None:
        raise UnreadableError(f"{path}: expected a record with its exported program, found none")
    return Exported({"forward": found}, {})


_WORK: dict[str, Callable[[Mapping[str, Any], Say], dict[str, Any]]] = {
    "list": _list,
    "backends": _backends,
    "card": _card,
    "compile": _compile,
    "refer": _refer,
    "run": ran,
    "prepare": handing.prepare,
    "preserve": handing.preserve,
    "partition": handing.partition,
    "preprocess": handing.preprocess,
    "quantize": quantize_handed,
}
