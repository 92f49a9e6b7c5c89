"""Whether the model converter of VGF takes its flags, by what it makes of a small graph."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compiler.backends.vendors.package import backend_part

_VGF = b"VGF"
_SMALL_GRAPH = """module {
  func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
    %y = tosa.abs %x : (tensor<1xf32>) -> tensor<1xf32>
    return %y : tensor<1xf32>
  }
}
"""


def converter_refuses(flags: Sequence[str]) -> str:
    """Return why the model converter makes no VGF of a small graph, "" if it does."""
    home = backend_part("arm.vgf.model_converter")
    with tempfile.TemporaryDirectory() as folder:
        graph, made = Path(folder, "graph.mlir"), Path(folder, "graph.vgf")
        graph.write_text(_SMALL_GRAPH, "utf-8")
        ran = subprocess.run(
            [
                *(str(home.require_model_converter_executable()), *flags),
                *("-i", str(graph), "-o", str(made)),
            ],
            capture_output=True,
            text=True,
            check=False,
            env=home.model_converter_env(),
        )
        if made.is_file() and made.read_bytes().startswith(_VGF):
            return ""
    said = (ran.stderr + ran.stdout).splitlines() if ran.returncode else ()
    return next((line.strip() for line in said if line.strip()), "with them it writes no VGF")
