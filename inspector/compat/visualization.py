"""``executorch.devtools.visualization``: a program as a graph in the window, or for Model Explorer.

The window is a separate process, which survives this one.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.record import user_values
from compiler.record.record import ETRecord
from inspector.export.model_explorer import explorer_graph
from inspector.files.load import load_session
from inspector.graph.model_graph import model_graph
from schema import etrecord
from schema.etrecord import members as m

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Node

_LABEL = "Executorch"  # of the documented collection
_APART = re.compile(r"[./\\\[\],;@'\"]")  # splits the path of a module
_NO_HANDLE = ("0", None)
NameOf = Callable[["Node"], "str | None"]


def visualize(
    visualizable: Any,  # noqa: ANN401 - as documented
    reuse_server: bool = True,
    no_open_in_browser: bool = False,
    **kwargs: object,
) -> None:
    """Open the window on the graph of a program.

    Args:
        visualizable: an ExportedProgram, an EdgeProgramManager or an ExecutorchProgramManager
        reuse_server: of Model Explorer, without effect here, without a server
        no_open_in_browser: only write the files, and print the command that opens them
        **kwargs: further options of Model Explorer, without effect here

    Raises: RuntimeError for anything else; ModuleNotFoundError if the window cannot be opened
    """
    _note(kwargs)
    del reuse_server
    folder = _folder()
    _write(visualizable, folder)
    _open(folder, quiet=no_open_in_browser)


def visualize_with_clusters(
    exported_program: ExportedProgram,
    json_file_name: str | None = None,
    no_open_in_browser: bool = False,
    reuse_server: bool = False,
    get_node_partition_name: NameOf = lambda node: node.meta.get("delegation_tag", None),
    get_node_qdq_cluster_name: NameOf = lambda node: node.meta.get("cluster", None),
    **kwargs: object,
) -> None:
    """Show a program with its partitions, and clusters inside them, as boxes.

    Args:
        exported_program: the program
        json_file_name: write this file for Model Explorer instead of opening the window
        no_open_in_browser: only write the files, and print the command that opens them
        reuse_server: of Model Explorer, without effect here, without a server
        get_node_partition_name: partition of a node or None
        get_node_qdq_cluster_name: cluster of a node or None
        **kwargs: further options of Model Explorer, without effect here

    Raises: RuntimeError for anything but a program; ModuleNotFoundError if the window cannot be
        opened; OSError
    """
    _note(kwargs)
    del reuse_server
    if not user_values.is_program(exported_program):
        raise RuntimeError(f"Cannot get ExportedProgram from {exported_program}")
    boxes = _boxes(exported_program, get_node_partition_name, get_node_qdq_cluster_name)
    folder = _folder()
    path = _write_graphs({user_values.FORWARD: exported_program}, folder, boxes)
    if json_file_name is None:
        _open(folder, quiet=no_open_in_browser)
        return
    Path(json_file_name).write_text(json.dumps(_collection(path)), encoding="utf-8")
    path.unlink()
    folder.rmdir()


def _note(unused: Mapping[str, object]) -> None:
    if unused:
        names = ", ".join(sorted(unused))
        warnings.warn(f"{names}: options of Model Explorer have no effect here", stacklevel=3)


# ---- files
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="etscope-graph-"))


def _write(visualizable: Any, folder: Path) -> None:  # noqa: ANN401
    if hasattr(visualizable, "buffer") and hasattr(visualizable, "methods"):
        (folder / "model.pte").write_bytes(visualizable.buffer)
        try:
            visualizable.get_etrecord().save(folder / "model.etrecord")
        except (AttributeError, RuntimeError):
            return  # none was requested
        return
    try:
        programs = user_values.edge_programs_of(visualizable)
    except RuntimeError:
        folder.rmdir()
        raise RuntimeError(f"Cannot get ExportedProgram from {visualizable}") from None
    _write_graphs(programs, folder)


def _write_graphs(
    programs: Mapping[str, ExportedProgram],
    folder: Path,
    boxes: Mapping[str, list[str]] | None = None,
) -> Path:
    """Write graphs as a record and return its path; without weights.

    Args:
        programs: by method
        folder: for the record
        boxes: by node, the names of enclosing boxes instead of modules
    """
    artifact = ETRecord(edge_dialect_program=dict(programs)).artifact
    changes: dict[str, bytes | None] = {}
    for member in artifact.roles.edge.values():
        changes[member] = _edited(artifact.read(member), boxes)
        changes |= dict.fromkeys(
            name
            for name in (member + suffix for suffix in m.SIDE_FILES)
            if name in artifact.archive
        )
    path = folder / "model.etrecord"
    path.write_bytes(etrecord.encode(etrecord.replace_members(artifact, changes)))
    return path


def _edited(program: memoryview, boxes: Mapping[str, list[str]] | None) -> bytes:
    """Return the JSON of a program with boxes for modules, and without handles of no meaning."""
    tree: Any = json.loads(bytes(program))
    nodes: list[dict[str, Any]] = tree["graph_module"]["graph"]["nodes"]
    unset = all(node["metadata"].get("debug_handle") in _NO_HANDLE for node in nodes)
    for node in nodes:
        metadata: dict[str, str] = node["metadata"]
        if unset:
            metadata.pop("debug_handle", None)
        if boxes is not None:
            metadata.pop("nn_module_stack", None)
            around = boxes.get(node["name"], [])
            paths = [".".join(around[: depth + 1]) for depth in range(len(around))]
            if paths:
                stack = [f"L{depth},{path},box" for depth, path in enumerate(paths)]
                metadata["nn_module_stack"] = ";".join(stack)
    return json.dumps(tree).encode()


def _boxes(program: ExportedProgram, partition: NameOf, cluster: NameOf) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    places: dict[str, int] = {}
    for node in program.graph.nodes:
        names = (partition(node), cluster(node))
        around = found.setdefault(node.name, [])
        if names[0] is not None:
            place = places.setdefault(names[0], len(places))
            around.append(f"partition {place} ({_APART.sub(':', names[0])})")
        if names[1] is not None:
            around.append(f"cluster ({_APART.sub(':', names[1])})")
    return found


def _collection(path: Path) -> dict[str, Any]:
    session = load_session([path])
    graph = model_graph(session, user_values.FORWARD)
    assert graph is not None  # it was just written
    graphs = [{**explorer_graph(user_values.FORWARD, graph), "collectionLabel": _LABEL}]
    levels = [{"graph": each, "level": level} for level, each in enumerate(graphs)]
    return {"label": _LABEL, "graphs": graphs, "graphsWithLevel": levels}


def _open(folder: Path, *, quiet: bool) -> None:
    files = [str(path) for path in sorted(folder.iterdir())]
    if quiet:
        print(f"etscope {' '.join(files)}")  # noqa: T201 - as the stock tool prints its address
        return
    if importlib.util.find_spec("PySide6") is None:
        raise ModuleNotFoundError(
            "the window needs PySide6, which is not installed; visualize_with_clusters with"
            f" json_file_name writes a file for Model Explorer. The graph is in {folder}"
        )
    subprocess.Popen([sys.executable, "-m", "devtools_app", "open", *files], start_new_session=True)
