"""A pass that logs the graph it is given, as `executorch.exir.passes.DebugPass`."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from compiler.compat.memory_planning import get_node_tensor_specs
from compiler.passes.base import PassBase, PassResult

_FRAME = re.compile(
    r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>\S+)\n\s*(?P<text>.*)'
)


class DebugPass(PassBase):
    """Logs code, nodes and call counts of a graph, which is not changed."""

    def __init__(  # noqa: PLR0913 - as documented
        self,
        msg: str = "",
        enable_debug_pass: bool = True,
        show_src: bool = False,
        show_full_path: bool = False,
        show_all_frames: bool = False,
        path_filter: str | None = None,
        show_spec: bool = False,
        log_filename: str | None = None,
    ) -> None:
        """Set the nodes to log.

        Args:
            msg: first line
            enable_debug_pass: False to disable it
            show_src: the source line of each node
            show_full_path: full paths of source lines instead of file names
            show_all_frames: the complete stack trace of a node instead of its last line
            path_filter: regular expression of the files whose lines are shown
            show_spec: the specs and the value of each node
            log_filename: file that is overwritten with the same text
        """
        self.msg = msg
        self.enable_debug_pass = enable_debug_pass
        self.show_src = show_src
        self.show_full_path = show_full_path
        self.show_all_frames = show_all_frames
        self.path_filter_re = re.compile(path_filter) if path_filter else None
        self.show_spec = show_spec
        self.log_filename = log_filename

    def call(self, graph_module: torch.fx.GraphModule) -> Any:  # noqa: ANN401 - a PassResult
        """Log a graph.

        Raises: OSError if the file cannot be written
        """
        if self.enable_debug_pass:
            text = "\n".join(self._lines(graph_module))
            logging.getLogger(__name__).debug("%s", text)
            if self.log_filename is not None:
                Path(self.log_filename).write_text(f"{text}\n", "utf-8")
        return PassResult(graph_module, False)

    def _lines(self, graph_module: torch.fx.GraphModule) -> Iterator[str]:
        graph_module.recompile()
        if self.msg:
            yield self.msg
        yield f"Code is:\n{graph_module.code}"
        yield "Nodes:"
        nodes: list[torch.fx.Node] = [*graph_module.graph.nodes]
        for place, node in enumerate(nodes):
            yield f"{place:4}: {node.format_node()}"
            if self.show_spec:
                yield from (f"      {spec.debug()}" for spec in get_node_tensor_specs(node))
                yield f"      val: {node.meta.get('val')}"
            if self.show_src:
                yield from self._frames(node)
        yield "-- node op type stat --"
        for op, count in Counter(node.op for node in nodes).items():
            yield f" op {op}, cnt {count}"
        yield "-- call_function stat --"
        called = Counter(str(node.target) for node in nodes if node.op == "call_function")
        for name, count in called.items():
            yield f" fn {name}, cnt {count}"

    def _frames(self, node: torch.fx.Node) -> Iterator[str]:
        found = [*_FRAME.finditer(str(node.meta.get("stack_trace") or ""))]
        requested = self.path_filter_re
        shown = [frame for frame in found if requested is None or requested.search(frame["file"])]
        for frame in shown if self.show_all_frames else shown[-1:]:
            file = frame["file"] if self.show_full_path else os.path.basename(frame["file"])
            yield f"      > {file}:{frame['line']} in {frame['name']}: {frame['text']}"
