"""Partitions and preprocesses programs that another interpreter hands over as files.

The answer is JSON; bytes go into numbered files of the folder of the request.
"""

from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from compiler.dialect import llama
from compiler.dialect.mutating_ops import is_write
from compiler.dialect.written import WRITTEN_NAMESPACES
from compiler.innermost import innermost
from compiler.interface.lifted_scalars import show_scalars
from compiler.interface.package_forms import for_backend, in_package_form
from compiler.interface.vendor_joins import following_vendor
from compiler.partition.logged_reasons import harvesting
from inspector.toolchain.handed_files import CUSTOM_MEMBER, NAMES_MEMBER
from inspector.toolchain.stock.nodes import calls_in, operator_name, operator_of, unit_of
from inspector.toolchain.stock.package import StockError, part, part_or_none
from inspector.toolchain.stock.partitioners import make
from inspector.toolchain.stock.rules import TAG, asking
from inspector.worker.exporter import AnswerError, redirect_logs
from inspector.worker.libraries import lacking, load_libraries, unregistered, unregistered_in

Say = Callable[..., None]
_MEMBERS = ("program.json", "state.pt", "constants.pt", CUSTOM_MEMBER, NAMES_MEMBER)
_HANDED = "handed_as"  # the operator of a node where it comes from
# operators of attention: ours, which are registered here, whatever the package has
_WRITTEN, _OURS = (f"ops.{space}.".encode() for space in (llama.WRITTEN, llama.NAMESPACE))
_UNUSED = "_unused_"  # results that the package's reader adds


class PreprocessError(Exception):
    """A backend that failed on a program; one sentence."""


class _Kept:
    """Partitioners that stay for the next request, by number."""

    made: dict[int, Any] = {}  # noqa: RUF012 - for the life of the process


def prepare(asked: Mapping[str, Any], notify: Say) -> dict[str, Any]:
    """Create a partitioner; return its class, and its backend and settings where it has them."""
    redirect_logs(notify)
    part("exir")
    register_operators(asked["libraries"])
    partitioner = make(asked["partitioner"])
    _Kept.made[int(asked["number"])] = partitioner
    spec = getattr(partitioner, "delegation_spec", None)
    told = None if spec is None else _spec(spec)
    return {"name": type(partitioner).__name__, "spec": told}


def register_operators(libraries: Sequence[str]) -> None:
    """Register the operators of programs that another interpreter hands over.

    Those of attention are registered by the import of their module.

    Args:
        libraries: of the user

    Raises: AnswerError, OSError, errors of the libraries' code
    """
    part_or_none("kernels.quantized")
    load_libraries(libraries)


def load(path: Path) -> Any:  # noqa: ANN401 - an exported program
    """Return the program of a ``.pt2`` file.

    Raises: AnswerError naming operators that no library has registered
    """
    if missing := unregistered(path):
        raise AnswerError(lacking(missing))
    return torch.export.load(path)


def preserve(asked: Mapping[str, Any], notify: Say) -> dict[str, Any]:
    """Return the operators that a partitioner wants whole, and the nodes that it accepts."""
    del notify
    query = getattr(_Kept.made[int(asked["number"])], "ops_to_not_decompose", None)
    if query is None:
        return {"operators": [], "nodes": None, "refused": []}
    program = load(Path(asked["program"]))
    ops, requested = query(program)
    nodes = [
        node.name
        for node in program.graph.nodes
        if node.op == "call_function"
        and node.target in ops
        and (requested is None or requested(node))
    ]
    refused = _refused_variants(program.graph, ops, requested) if requested else []
    schemas = [(one._schema.name, one._overloadname) for one in ops if hasattr(one, "_schema")]
    return {"operators": schemas, "nodes": nodes, "refused": refused}


def _refused_variants(
    graph: Any,  # noqa: ANN401 - of the program
    ops: Any,  # noqa: ANN401 - operators
    requested: Callable[[Any], bool],
) -> list[tuple[str, str]]:
    """Return the operators whose calls in place a filter refuses; they become functional later."""
    found: list[tuple[str, str]] = []
    for node in graph.nodes:
        name = getattr(getattr(node.target, "_schema", None), "name", "")
        if node.op != "call_function" or not name.endswith("_"):
            continue
        space, _, base = name[:-1].partition("::")
        packet = getattr(getattr(torch.ops, space), base, None)
        functional = getattr(packet, node.target._overloadname, None)
        if functional not in ops:
            continue
        in_place, node.target = node.target, functional
        if not requested(node):
            found.append((name[:-1], in_place._overloadname))
        node.target = in_place
    return found


def partition(asked: Mapping[str, Any], notify: Say) -> dict[str, Any]:
    """Return the tags of a program's nodes, the settings of each tag, and logged reasons."""
    program = read(Path(asked["folder"]))
    partitioner = _Kept.made[int(asked["number"])]
    calls = {path: node for node, path in calls_in(program.graph_module)}
    vetoed = {unit_of(calls[path]) for path in asked["vetoed"] if path in calls}
    names = {name for node in calls.values() for name in (node.name, operator_of(node))}
    with harvesting(names, notify, prints=True) as harvest, asking(vetoed):
        result = partitioner.partition(program)
    tagged = result.tagged_exported_program
    after = [(path, node) for node, path in calls_in(tagged.graph_module)]
    data = [
        (node.name, node.meta[TAG])
        for node in tagged.graph.nodes
        if node.op in ("placeholder", "get_attr") and TAG in node.meta
    ]
    specs = {str(tag): _spec(spec) for tag, spec in result.partition_tags.items()}
    return {
        "nodes": [
            (path, node.meta.get(_HANDED) or _known_there(node), node.meta.get(TAG))
            for path, node in after
        ],
        "data": data,
        "specs": specs,
        "reasons": {
            name: [(one.text, one.logger) for one in found] for name, found in harvest.found.items()
        },
    }


def _known_there(node: Any) -> str:  # noqa: ANN401
    """Return the operator of a node by its name in the other interpreter."""
    name = operator_name(node.args[0]) if is_write(node) else operator_of(node)
    space, dot, rest = name.partition(".")
    return f"{WRITTEN_NAMESPACES.get(space, space)}{dot}{rest}"


def _spec(spec: Any) -> dict[str, Any]:  # noqa: ANN401 - of the package
    backend = _backend(spec.backend_id)
    settings = [(one.key, _encoded(one.value)) for one in spec.compile_specs]
    together = "preprocess_multimethod" in vars(backend)
    return {"backend": spec.backend_id, "settings": settings, "together": together}


def _encoded(value: Any) -> str:  # noqa: ANN401
    return base64.b64encode(bytes(value)).decode()


def _backend(name: str) -> Any:  # noqa: ANN401 - a class of the package
    base = part("exir.backend.backend_details").BackendDetails
    found = [one for one in base.__subclasses__() if one.__name__ == name]
    if not found:
        raise StockError(f"no backend {name} is imported where its partitioner is")
    return found[-1]


def preprocess(asked: Mapping[str, Any], notify: Say) -> dict[str, Any]:
    """Preprocess programs of one backend by method; payloads and data go into files."""
    del notify
    folder = Path(asked["folder"])
    backend = _backend(str(asked["backend"]))
    kind = part("exir.backend.compile_spec_schema").CompileSpec
    programs: dict[str, list[Any]] = {}
    settings: dict[str, list[Any]] = {}
    for one in asked["programs"]:
        own = [kind(key, base64.b64decode(value)) for key, value in one["settings"]]
        program = read(Path(one["folder"]))
        programs.setdefault(one["method"], []).append(for_backend(backend.__name__, program))
        settings.setdefault(one["method"], []).append(own)
    results = preprocessed(backend, programs, settings, together=bool(asked["together"]))
    files = _files(folder)
    return {method: [_result(one, files) for one in found] for method, found in results.items()}


def preprocessed(
    backend: Any,  # noqa: ANN401 - a class of the package
    programs: Mapping[str, list[Any]],
    settings: Mapping[str, list[Any]],
    *,
    together: bool,
) -> dict[str, list[Any]]:
    """Return the results of a backend by method.

    Raises: PreprocessError with the first cause: vendors wrap it in lists of their passes
    """
    try:
        if together:
            return backend.preprocess_multimethod(programs, settings)
        return {
            method: [_joined(backend, *pair) for pair in zip(found, settings[method])]  # noqa: B905
            for method, found in programs.items()
        }
    except Exception as error:
        raise PreprocessError(innermost(error)) from error


def _joined(backend: Any, program: Any, specs: Any) -> Any:  # noqa: ANN401
    """Return the result of a backend with true debug handles and the nodes that it stands for."""
    with following_vendor(backend.__name__, program) as joins:
        result = backend.preprocess(program, specs)
    made, handles = bytes(result.processed_bytes), result.debug_handle_map
    result.debug_handle_map, result.origins = joins.of(made, handles)
    return result


def _files(folder: Path) -> Iterator[Path]:
    number = 0
    while True:
        yield folder / f"{number}.bin"
        number += 1


def _result(result: Any, files: Iterator[Path]) -> dict[str, Any]:  # noqa: ANN401
    target = next(files)
    target.write_bytes(bytes(result.processed_bytes))
    handles: Any = result.debug_handle_map
    origins: Any = getattr(result, "origins", None)
    found: dict[str, Any] = {"payload": int(target.stem), "handles": None, "data": None}
    found["origins"] = dict(origins or {})
    if handles is not None:
        found["handles"] = [(key, list(_several(value))) for key, value in handles.items()]
    store = result.data_store_output
    if store is not None:
        found["data"] = {
            "buffers": [_written(one, files) for one in store.buffers],
            "inside": _entries(store.pte_data),
            "outside": {name: _entries(own) for name, own in store.external_data.items()},
        }
    return found


def _several(value: Any) -> Any:  # noqa: ANN401 - a handle or some
    return (value,) if isinstance(value, int) else value


def _written(buffer: Any, files: Iterator[Path]) -> int:  # noqa: ANN401 - bytes or a file
    target = next(files)
    target.write_bytes(
        bytes(buffer) if isinstance(buffer, (bytes, bytearray)) else buffer.to_bytes()
    )
    return int(target.stem)


def _entries(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: (one.buffer_index, one.alignment, _layout(one.tensor_layout))
        for key, one in entries.items()
    }


def _layout(layout: Any) -> Any:  # noqa: ANN401
    if layout is None:
        return None
    return int(layout.scalar_type), list(layout.sizes), list(layout.dim_order)


def read(folder: Path) -> Any:  # noqa: ANN401 - an exported program
    """Return a program that the other interpreter has written.

    Its nodes have the names that they have there.
    """
    with zipfile.ZipFile(folder / "program.zip") as file:
        text, state, constants, custom, names = (file.read(name) for name in _MEMBERS)
    text = text.replace(_WRITTEN, _OURS)
    if missing := unregistered_in([text]):
        raise AnswerError(lacking(missing))
    serde, kind = part("exir.serde.serialize"), part("exir.serde.export_serialize")
    described = json.loads(text)
    described["verifiers"] = []  # those of this release are not known by name
    found = serde.deserialize(
        kind.SerializedArtifact(json.dumps(described).encode(), state, constants, b"")
    )
    verifier = part("exir.verification.verifier").EXIREdgeDialectVerifier
    config = part("exir.capture._config").EdgeCompileConfig(_check_ir_validity=False)
    found._verifiers = [verifier(config, class_only=True)]
    notes: dict[str, dict[str, Any]] = json.loads(custom)
    called: dict[str, list[str]] = json.loads(names)
    for path, module in [*found.graph_module.named_modules()]:
        if isinstance(module, torch.fx.GraphModule):
            for node in [*module.graph.nodes]:
                if _UNUSED in node.name and not node.users:
                    module.graph.erase_node(node)
            _name_calls(module.graph, called.get(path, ()))
            for node in [*module.graph.nodes]:
                if note := notes.get(path, {}).get(node.name):
                    node.meta["custom"] = note
                if node.op == "call_function":
                    _give_in_order(node)
                    _give_in_known_form(node)
            module.recompile()
    show_scalars(found, found.graph)
    return found


def _name_calls(graph: Any, names: Sequence[str]) -> None:  # noqa: ANN401 - a graph
    """Give calls their names again: the package's reader numbers those with several results."""
    calls = [node for node in graph.nodes if node.op == "call_function"]
    if len(calls) == len(names):
        for node, name in zip(calls, names, strict=True):
            if node.name != name:
                graph._graph_namespace.create_name(name, None)  # taken from now on
                node.name = name


def _give_in_known_form(node: Any) -> None:  # noqa: ANN401 - a node
    """Replace a form of an operator that the package decomposes, so that no vendor knows it."""
    name = operator_of(node)
    other = in_package_form(name, node)
    if other == name:
        return
    node.meta[_HANDED] = name
    target: Any = part("exir.dialects._ops").ops.edge
    for word in other.split("."):
        target = getattr(target, word)
    node.target = target


def _give_in_order(node: Any) -> None:  # noqa: ANN401 - a node
    """Pass arguments by position that the package's reader passes by name; vendors count them."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return
    plain = [one for one in schema.arguments if not one.kwarg_only]
    named = dict(node.kwargs)
    last = max((at for at, one in enumerate(plain) if one.name in named), default=-1)
    given = [*node.args]
    for one in plain[len(given) : last + 1]:
        given.append(named.pop(one.name, one.default_value))
    node.args, node.kwargs = tuple(given), named
