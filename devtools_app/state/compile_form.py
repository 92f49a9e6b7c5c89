"""The input of the Compile dialog, remembered between uses."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from devtools_app.state.json_file import get_bool, get_choice, get_int, get_text

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.recipes.compile_job import CompileJob, Quantization

_MOST_NODES = 1_000_000
MODES = ("static", "dynamic", "weight-only")
"""Quantization modes."""
EXECUTORCH = "executorch"
"""The toolchain that is not our own."""


@dataclass(frozen=True, slots=True)
class CompileForm:
    """The fields of the dialog as the user left them.

    Attributes:
        source: file
        function: in a Python file
        python: interpreter that runs it, empty for our own
        methods: names, separated by spaces; empty for all
        partitioners: one per line, in order of preference
        deny_ops: names or patterns, separated by spaces
        deny_nodes: names or patterns, separated by spaces
        min_nodes: smallest partition
        planner: name, empty for the smallest of all plans
        external_constants: whether constants get a file of their own
        libraries: files that register operators, one beside the other as on a search path
        folder: where the files go
        replace: whether files in it may be replaced
        quantize: mode, empty to leave the program as it is
        calibration: file of inputs, empty for the example inputs
        overrides: other modes of modules and operators as NAME=MODE, separated by spaces
        per_tensor: whether weights have one scale instead of one for each channel
        passes: names or file.py:NAME, separated by spaces
        quantizer: file.py:NAME instead of a mode
        edge_config: NAME=VALUE, separated by spaces
        toolchain: what compiles, empty for our own; the interpreter is the one that has it
    """

    source: str = ""
    function: str = ""
    python: str = ""
    methods: str = ""
    partitioners: str = ""
    deny_ops: str = ""
    deny_nodes: str = ""
    min_nodes: int = 1
    planner: str = ""
    external_constants: bool = False
    folder: str = ""
    replace: bool = False
    quantize: str = ""
    calibration: str = ""
    overrides: str = ""
    toolchain: str = ""
    per_tensor: bool = False
    libraries: str = ""
    passes: str = ""
    quantizer: str = ""
    edge_config: str = ""

    @property
    def is_python(self) -> bool:
        """Return whether a function is to be run."""
        return self.source.endswith(".py")

    @property
    def needs_interpreter(self) -> bool:
        """Return whether another interpreter runs the function or compiles."""
        return self.is_python or self.toolchain == EXECUTORCH

    def problem(self) -> str:
        """Return the first problem as one sentence, empty if it can be compiled."""
        from inspector.jobs.output_folder import FolderError, check_folder
        from inspector.recipes.compile_job import OVERRIDES
        from inspector.recipes.emission import WordError, check_passes, edge_config_of
        from inspector.recipes.options import AssignmentError, parse_assignment

        if not self.source:
            return "Choose a Python file, a .pt2 file or an ETRecord."
        wanted = self.quantize or self.quantizer
        calibration = (self.calibration,) if wanted and self.calibration else ()
        files = (self.source, *paths_in(self.libraries), *calibration)
        gone = next((path for path in files if not os.path.isfile(path)), "")
        if gone:
            return f"{gone} not found."
        if self.is_python and not self.function.isidentifier():
            return "Name the function that returns the module and its example inputs."
        try:
            for word in self.overrides.split() if self.quantize else ():
                parse_assignment(word, "MODE", OVERRIDES)
            check_passes(self.passes.split())
            edge_config_of(self.edge_config.split())
        except (WordError, AssignmentError) as error:
            return f"{error}."
        gone = next((path for path in self.runs() if not os.path.isfile(path)), "")
        if gone:
            return f"{gone}: file not found."
        if not self.folder:
            return "Choose a folder for the files."
        try:
            check_folder(Path(self.folder), force=self.replace)
        except FolderError as error:
            if error.usage and "--force" in str(error):
                return "The folder is not empty: choose another or allow replacing files in it."
            return f"{error}."
        return ""

    def runs(self) -> tuple[str, ...]:
        """Return the files whose Python code a compile would run."""
        from inspector.recipes.compile_job import Source, code_files

        found = code_files(replace(self.job(), source=Source(self.source)))
        return tuple(path for path in found if path)

    def job(self) -> CompileJob:
        """Return the requested job."""
        from inspector.recipes.compile_job import CompileJob, Rules, Source

        lines = (line.strip() for line in self.partitioners.splitlines())
        return CompileJob(
            Source(os.path.abspath(self.source), self.function if self.is_python else ""),
            self.python if self.needs_interpreter else "",
            tuple(self.methods.split()),
            tuple(line for line in lines if line),
            Rules(
                deny_ops=tuple(self.deny_ops.split()),
                deny_nodes=tuple(self.deny_nodes.split()),
                min_nodes=self.min_nodes,
            ),
            self.planner,
            self.external_constants,
            self._quantization(),
            toolchain=self.toolchain,
            libraries=paths_in(self.libraries),
            passes=tuple(self.passes.split()),
            edge_config=tuple(self.edge_config.split()),
        )

    def _quantization(self) -> Quantization:
        from inspector.recipes.compile_job import Quantization

        calibration = os.path.abspath(self.calibration) if self.calibration else ""
        if self.quantizer:
            return Quantization(calibration=calibration, quantizer=self.quantizer)
        if not self.quantize:
            return Quantization()
        words = self.overrides.split()
        return Quantization(
            self.quantize,
            calibration,
            per_tensor=self.per_tensor,
            modules=tuple(word for word in words if not word.startswith("aten.")),
            operators=tuple(word for word in words if word.startswith("aten.")),
        )


def form_from(content: dict[str, object]) -> CompileForm:
    """Return the form in a JSON object; missing or invalid fields become empty."""
    return CompileForm(
        source=get_text(content, "source"),
        function=get_text(content, "function"),
        python=get_text(content, "python"),
        methods=get_text(content, "methods"),
        partitioners=get_text(content, "partitioners"),
        deny_ops=get_text(content, "deny_ops"),
        deny_nodes=get_text(content, "deny_nodes"),
        min_nodes=min(_MOST_NODES, max(1, get_int(content, "min_nodes", 1))),
        planner=get_text(content, "planner"),
        external_constants=get_bool(content, "external_constants", False),
        quantize=_mode(get_text(content, "quantize")),
        calibration=get_text(content, "calibration"),
        overrides=get_text(content, "overrides"),
        per_tensor=get_bool(content, "per_tensor", False),
        libraries=get_text(content, "libraries"),
        passes=get_text(content, "passes"),
        quantizer=get_text(content, "quantizer"),
        edge_config=get_text(content, "edge_config"),
        toolchain=get_choice(content, "toolchain", (EXECUTORCH,), ""),
        folder=get_text(content, "folder"),
        replace=get_bool(content, "replace", False),
    )


def paths_in(text: str) -> tuple[str, ...]:
    """Return the files that are named one beside the other, as from the root."""
    names = (name.strip() for name in text.split(os.pathsep))
    return tuple(os.path.abspath(name) for name in names if name)


def with_path(text: str, path: str) -> str:
    """Return the string with one more file."""
    return f"{text.rstrip()}{os.pathsep}{path}" if text.strip() else path


def _mode(text: str) -> str:
    return text if text in MODES else ""
