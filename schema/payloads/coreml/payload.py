"""Decodes a Core ML payload: the folder, the program, its weights and debug handles.

Source: backends/apple/coreml/compiler/coreml_preprocess.py
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

from schema.errors import FormatError, Issue, Severity
from schema.graph import Graph, GraphNode, GraphValue
from schema.payloads.coreml import blobs
from schema.payloads.coreml.model import CoreMLProgram, Weight, read_model, read_text
from schema.payloads.coreml.tree import File, FileTree, read_tree
from schema.payloads.model import INLINE, Constant, Part, Payload, PayloadSource
from schema.payloads.named import named_constant
from schema.payloads.parts import carve, cover

REFERENCE = b"CMJR"
_WHERE = "Core ML payload"
_MAX_JSON = 64 << 20
_LAST_HANDLE = (1 << 31) - 1
_Handles = Mapping[str, tuple[int, ...]]


def decode_payload(source: PayloadSource) -> Payload:
    """Decode a Core ML payload or a reference to one in named data.

    Raises: FormatError if it contains no folder
    """
    if bytes(source.data[:4]) == REFERENCE:
        return _reference(source)
    return _folder(source, source.data, "")


def _reference(source: PayloadSource) -> Payload:
    data = source.data
    facts = _json(data[4:], "reference")
    key, function = str(facts.get("key", "")), str(facts.get("functionName", ""))
    model = named_constant(key, source.named_data, role="model")
    parts = cover(data, [Part("magic", "header", 0, 4), Part("reference", "text", 4, len(data))])
    here: dict[str, object] = {"model in named data": key, "function": function}
    if model.data is None:
        text = f"the model {key} is not in the named data at hand"
        issue = Issue(Severity.WARNING, _WHERE, text)
        return Payload(
            source.backend_id,
            "CMJR",
            len(data),
            parts=parts,
            constants=(model,),
            summary=MappingProxyType(here),
            issues=(issue,),
        )
    built = _folder(source, model.data, function)
    return replace(
        built,
        format=f"CMJR, {built.format}",
        size=len(data),
        parts=parts,
        constants=(model, *built.constants),
        summary=MappingProxyType({**here, **built.summary}),
    )


def _json(data: memoryview, what: str) -> dict[str, Any]:
    if len(data) > _MAX_JSON:
        raise FormatError(f"a {what} below {_MAX_JSON} bytes", f"{len(data)} bytes")
    try:
        found = json.loads(bytes(data).decode("utf-8", "backslashreplace"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FormatError(f"a JSON object as {what}", "none")
    return cast("dict[str, Any]", found)


def _folder(source: PayloadSource, data: memoryview, function: str) -> Payload:
    issues: list[Issue] = []
    tree = read_tree(data, issues)
    files = {file.path: file for file in tree.files}
    metadata = _optional(files, "metadata.json", issues)
    symbols = _symbols(_optional(files, "debug_info.json", issues), issues)
    program = _program(files, issues)
    chosen = program.choose(function)
    graph = program.functions.get(chosen)
    if function and chosen != function and graph is not None:
        text = f"the program has no function {function}; shown is {chosen}"
        issues.append(Issue(Severity.WARNING, _WHERE, text))
    constants: tuple[Constant, ...] = ()
    weights: dict[str, list[Part]] = {}
    if graph is not None:
        constants, weights = _weights(program.weights.get(chosen, {}), files, issues)
        graph = _complete(graph, {one.name: one.nbytes for one in constants}, symbols)
        symbols = _of_nodes(symbols, graph)
    inputs, outputs = _interface(metadata, function)
    model = next((path.split("/")[0] for path in files if path.startswith("model.")), "none")
    return Payload(
        source.backend_id,
        f"Core ML folder with {model}",
        len(data),
        graph,
        cover(data, _claims(tree, data, weights)),
        constants,
        symbols,
        _summary(program, metadata, files, graph),
        MappingProxyType({path: file.data for path, file in files.items()}),
        MappingProxyType(dict(enumerate((*inputs, *outputs)))),
        issues=tuple(issues),
    )


def _optional(files: Mapping[str, File], path: str, issues: list[Issue]) -> dict[str, Any]:
    if path not in files:
        return {}
    try:
        return _json(files[path].data, path)
    except FormatError as error:
        issues.append(Issue(Severity.WARNING, _WHERE, str(error)))
        return {}


def _symbols(info: Mapping[str, Any], issues: list[Issue]) -> _Handles:
    found = info.get("debugSymbolToHandles")
    if not isinstance(found, dict):
        return MappingProxyType({})
    kept: dict[str, tuple[int, ...]] = {}
    wrong: list[str] = []
    for symbol, handles in cast("dict[str, Any]", found).items():
        listed = cast("list[Any]", handles) if isinstance(handles, list) else [handles]
        kept[symbol] = tuple(one for one in listed if type(one) is int and 0 <= one <= _LAST_HANDLE)
        if len(kept[symbol]) != len(listed):
            wrong.append(symbol)
    if wrong:
        text = f"debug handles of {wrong[0][:80]} are out of range and were dropped"
        more = f" (the first of {len(wrong)})" if len(wrong) > 1 else ""
        issues.append(Issue(Severity.WARNING, "debug_info.json", text + more))
    return MappingProxyType(kept)


def _program(files: Mapping[str, File], issues: list[Issue]) -> CoreMLProgram:
    for path, file in files.items():
        if not path.endswith((".mlmodel", "/model.mil")):
            continue
        try:
            return read_text(file.data) if path.endswith(".mil") else read_model(file.data)
        except FormatError as error:
            issues.append(Issue(Severity.ERROR, _WHERE, str(error.inside(path))))
            return CoreMLProgram()
    text = "it contains no readable program"
    issues.append(Issue(Severity.INFO, _WHERE, text))
    return CoreMLProgram()


def _claims(tree: FileTree, data: memoryview, weights: Mapping[str, list[Part]]) -> list[Part]:
    claims: list[Part] = []
    for file in tree.files:
        whole = Part(file.path, "file", file.offset, len(file.data))
        claims += carve(whole, weights.get(file.path, ()))
    end = len(data) - tree.directory_offset
    claims.append(Part("directory", "directory", tree.directory_offset, end))
    return claims


def _weights(
    weights: Mapping[str, Weight], files: Mapping[str, File], issues: list[Issue]
) -> tuple[tuple[Constant, ...], dict[str, list[Part]]]:
    """Return the constants, and the parts of each file that they are."""
    constants: list[Constant] = []
    claims: dict[str, list[Part]] = {}
    wrong: list[tuple[Severity, str]] = []
    for name, weight in weights.items():
        if isinstance(weight, memoryview):  # inside the model itself
            constants.append(Constant(name, len(weight), INLINE, weight))
            continue
        path, offset = weight
        file = _weight_file(path, files)
        if file is None:
            wrong.append((Severity.WARNING, f"the weight file {path} is not in the folder"))
            continue
        try:
            blob = blobs.read_blob(file.data, offset)
        except FormatError as error:
            wrong.append((Severity.ERROR, str(error.inside(name))))
            continue
        constants.append(Constant(name, len(blob.data), INLINE, blob.data))
        part = Part(name, "constant", file.offset + blob.offset, len(blob.data))
        claims.setdefault(file.path, []).append(part)
    if wrong:
        more = f" (the first of {len(wrong)} missing weights)" if len(wrong) > 1 else ""
        issues.append(Issue(wrong[0][0], _WHERE, wrong[0][1] + more))
    return tuple(constants), claims


def _weight_file(path: str, files: Mapping[str, File]) -> File | None:
    """Return the file that a program refers to, in the folder of the model."""
    tail = path.removeprefix("@model_path/")
    for folder in ("model.mlpackage/Data/com.apple.CoreML/", "model.mlmodelc/", ""):
        if folder + tail in files:
            return files[folder + tail]
    return None


def _complete(graph: Graph, sizes: Mapping[str, int | None], symbols: _Handles) -> Graph:
    values = {
        name: replace(value, constant_bytes=sizes.get(value.constant)) if value.constant else value
        for name, value in graph.values.items()
    }
    nodes = tuple(_with_handle(node, symbols) for node in graph.nodes)
    inner = {name: _complete(one, sizes, symbols) for name, one in graph.subgraphs.items()}
    return replace(
        graph, nodes=nodes, values=cast("Mapping[str, GraphValue]", values), subgraphs=inner
    )


def _of_nodes(symbols: _Handles, graph: Graph) -> _Handles:
    """Return the handles of nodes; constants that are attributes of another node are none."""
    names = {node.name for one in (graph, *graph.subgraphs.values()) for node in one.nodes}
    return MappingProxyType({name: kept for name, kept in symbols.items() if name in names})


def _with_handle(node: GraphNode, symbols: _Handles) -> GraphNode:
    handles = symbols.get(node.name, ())
    if not handles:
        return node
    first, *others = handles
    facts = dict(node.attributes)
    if others:
        facts["debug_handles"] = handles
    return replace(node, debug_handle=first, attributes=MappingProxyType(facts))


def _interface(metadata: Mapping[str, Any], function: str) -> tuple[list[str], list[str]]:
    methods = metadata.get("methods")
    if isinstance(methods, dict) and function in methods:
        metadata = cast("dict[str, Any]", methods)[function]
    return _names(metadata, "inputNames"), _names(metadata, "outputNames")


def _names(metadata: object, key: str) -> list[str]:
    found = cast("dict[str, Any]", metadata).get(key) if isinstance(metadata, dict) else None
    return [str(name) for name in cast("list[Any]", found)] if isinstance(found, list) else []


def _summary(
    program: CoreMLProgram,
    metadata: Mapping[str, Any],
    files: Mapping[str, File],
    graph: Graph | None,
) -> Mapping[str, object]:
    facts: dict[str, object] = {
        "identifier": str(metadata.get("identifier", "")),
        "model": program.kind,
        "specification version": program.specification,
        "functions": ", ".join(program.functions),
        "shown function": graph.name if graph is not None else "",
        "opset": program.opsets.get(graph.name, "") if graph is not None else "",
        "operations": len(graph.calls()) if graph is not None else 0,
        "files": len(files),
        "file bytes": sum(len(file.data) for file in files.values()),
    }
    return MappingProxyType(facts)
