"""Porting a script: each form of import, and nothing else of the text changes."""

from __future__ import annotations

import ast
import json
import re

import pytest

from inspector.compat.porting.notebooks import port_notebook
from inspector.compat.porting.port import PortVerdict, port_source

PART = "executorch.backends.xnnpack.partition.xnnpack_partitioner"
# before, after; every one leaves nothing to do by hand
FORMS = {
    "one name": ("from executorch.exir import to_edge\n", "from compiler import to_edge\n"),
    "modules inside documented packages": (
        "from executorch.export.recipe import ExportRecipe\n"
        "from executorch.exir.passes.quant_fusion_pass import QuantFusionPass\n"
        "from executorch.exir.backend.backend_details import BackendDetails, CompileSpec\n"
        "from executorch.devtools.intermediate_output_tap._tap_pass import TapRule\n",
        "from inspector.compat.export_session import ExportRecipe\n"
        "from compiler import QuantFusionPass\n"
        "from compiler import BackendDetails, CompileSpec\n"
        "from compiler.compat.taps import TapRule\n",
    ),
    "renamed by the script": (
        "from executorch.exir import to_edge as te\n",
        "from compiler import to_edge as te\n",
    ),
    "names of two modules": (
        "from executorch.devtools import Inspector as I, BundledProgram\n",
        "from inspector import Inspector as I\nfrom runtime.bundled import BundledProgram\n",
    ),
    "no line end": ("from executorch.exir import to_edge", "from compiler import to_edge"),
    "odd spaces": (
        "from  executorch.exir  import  to_edge ,ExecutorchBackendConfig  # é\n",
        "from  compiler  import  to_edge ,ExecutorchBackendConfig  # é\n",
    ),
    "continued line": (
        "from executorch.exir \\\n  import to_edge, \\\n    EdgeCompileConfig\n",
        "from compiler \\\n  import to_edge, \\\n    EdgeCompileConfig\n",
    ),
    "parentheses and comments": (
        "from executorch.exir import (  # a\n    # b\n    to_edge,  # c\n)  # d\n",
        "from compiler import (  # a\n    # b\n    to_edge,  # c\n)  # d\n",
    ),
    "split with comments": (
        "from executorch.devtools import (\n"
        "    # first\n    Inspector,  # i\n    BundledProgram,  # b\n"
        "    parse_etrecord,\n    # last\n)\n",
        "from inspector import (\n    # first\n    Inspector,  # i\n"
        "    parse_etrecord,\n    # last\n)\n"
        "from runtime.bundled import (\n    BundledProgram,  # b\n)\n",
    ),
    "noqa holds for each": (
        "from executorch.devtools import Inspector, BundledProgram  # noqa: E402\n",
        "from inspector import Inspector  # noqa: E402\n"
        "from runtime.bundled import BundledProgram  # noqa: E402\n",
    ),
    "one line of several": (
        "x = 1; from executorch.devtools import Inspector, BundledProgram; y = 2\n",
        "x = 1; from inspector import Inspector; from runtime.bundled import BundledProgram;"
        " y = 2\n",
    ),
    "body on the line of its head": (
        "if True: from executorch.devtools import Inspector, BundledProgram\n",
        "if True: from inspector import Inspector; from runtime.bundled import BundledProgram\n",
    ),
    "in a function": (
        "def f():\n\tfrom executorch.devtools import Inspector, BundledProgram\n",
        "def f():\n\tfrom inspector import Inspector\n"
        "\tfrom runtime.bundled import BundledProgram\n",
    ),
    "after text of several bytes": (
        "é = 'ü'; from executorch.exir import to_edge\n",
        "é = 'ü'; from compiler import to_edge\n",
    ),
    "alias of a module": (
        "import executorch.exir as exir\nexir.to_edge(x)\n",
        "import compiler as exir\nexir.to_edge(x)\n",
    ),
    "module out of a package": (
        "from executorch import exir\nexir.to_edge(x)\n",
        "import compiler as exir\nexir.to_edge(x)\n",
    ),
    "module with its own name": (
        "from executorch import runtime\nruntime.Runtime.get()\n",
        "import runtime\nruntime.Runtime.get()\n",
    ),
    "module beside a name": (
        "from executorch.exir import to_edge, memory_planning as mp\nmp.greedy\n",
        "import compiler as mp\nfrom compiler import to_edge\nmp.greedy\n",
    ),
    "nested attributes": (
        "import executorch.exir as e\ne.backend.partitioner.Partitioner\n",
        "import compiler as e\ne.Partitioner\n",
    ),
    "alias with names of two modules": (
        "import executorch.devtools as d\nd.Inspector, d.BundledProgram.x\n",
        "from inspector import Inspector\nfrom runtime.bundled import BundledProgram\n"
        "Inspector, BundledProgram.x\n",
    ),
    "name that is taken": (
        "import executorch.devtools as d\nInspector = d.Inspector\nd.BundledProgram\n",
        "from inspector import Inspector as d_Inspector\n"
        "from runtime.bundled import BundledProgram\n"
        "Inspector = d_Inspector\nBundledProgram\n",
    ),
    "dotted import": (
        "import executorch.exir, os\nexecutorch.exir.to_edge(os)\n",
        "from compiler import to_edge\nimport os\nto_edge(os)\n",
    ),
    "dotted imports of two modules": (
        f"import executorch.exir\nimport {PART}\n"
        f"executorch.exir.to_edge({PART}.XnnpackPartitioner())\n",
        "from compiler import to_edge\nfrom compiler.backends.xnnpack import XnnpackPartitioner\n"
        "to_edge(XnnpackPartitioner())\n",
    ),
    "unused dotted import": ("import executorch.exir  # x\ny = 1\n", "y = 1\n"),
    "only statement of a block": (
        "try:\n    import executorch.kernels.quantized\nexcept ImportError:\n    pass\n",
        "try:\n    pass\nexcept ImportError:\n    pass\n",
    ),
    "registered kernels": (
        "from executorch.kernels import quantized  # noqa: F401\nx = 1\n",
        "x = 1\n",
    ),
    "import that may fail": (
        "try:\n    import executorch.exir as e\nexcept ImportError:\n    e = None\n"
        "if e is not None:\n    e.to_edge\n",
        "try:\n    import compiler as e\nexcept ImportError:\n    e = None\n"
        "if e is not None:\n    e.to_edge\n",
    ),
    "imported in both branches": (
        "if x:\n    import executorch.devtools as d\nelse:\n    import executorch.devtools as d\n"
        "d.Inspector, d.BundledProgram\n",
        "if x:\n    from inspector import Inspector\n"
        "    from runtime.bundled import BundledProgram\n"
        "else:\n    from inspector import Inspector\n"
        "    from runtime.bundled import BundledProgram\n"
        "Inspector, BundledProgram\n",
    ),
    "a parameter of the same name": (
        "import executorch.devtools as d\ndef f(d): return d.event_blocks\n"
        "d.Inspector\nd.BundledProgram\n",
        "from inspector import Inspector\nfrom runtime.bundled import BundledProgram\n"
        "def f(d): return d.event_blocks\nInspector\nBundledProgram\n",
    ),
    "global alias": (
        "def load():\n    global e\n    import executorch.exir as e\ne.to_edge\n",
        "def load():\n    global e\n    import compiler as e\ne.to_edge\n",
    ),
    "star": (
        "from executorch.devtools import *\nInspector, BundledProgram\nprint\n",
        "from runtime.bundled import BundledProgram\nfrom inspector import Inspector\n"
        "Inspector, BundledProgram\nprint\n",
    ),
    "torch moved": (
        "from torch.export import export, export_for_training\n",
        "from torch.export import export, export as export_for_training\n",
    ),
    "torch attribute": (
        "import torch\ntorch.export.export_for_training(m, ())\ntorch.export.Dim\n",
        "import torch\ntorch.export.export(m, ())\ntorch.export.Dim\n",
    ),
    "quantization of torch": (
        "from torch.ao.quantization.quantize_pt2e import convert_pt2e, prepare_pt2e\n",
        "from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e\n",
    ),
    "quantizer of torch": (
        "from torch.ao.quantization.quantizer.xnnpack_quantizer import XNNPACKQuantizer\n",
        "from compiler.backends.xnnpack.quantizer import XNNPACKQuantizer\n",
    ),
    "module of torch": (
        "from torch.ao.quantization import quantize_pt2e as q\nq.prepare_pt2e\n",
        "import torchao.quantization.pt2e.quantize_pt2e as q\nq.prepare_pt2e\n",
    ),
    "logger": (
        "import logging\nlogging.getLogger('executorch.backends.xnnpack.partition').setLevel(10)\n",
        "import logging\nlogging.getLogger('compiler.backends.xnnpack.partition').setLevel(10)\n",
    ),
    "nothing to port": (
        "import torch, executorch_extras\nfrom . import executorch\nfrom .executorch import x\n",
        "import torch, executorch_extras\nfrom . import executorch\nfrom .executorch import x\n",
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_form_becomes_ours_and_stays_so(form: str, end: str) -> None:
    before, after = (text.replace("\n", end) for text in FORMS[form])
    ported = port_source(before)
    assert ported.text == after
    assert ported.missing == ()
    assert port_source(after).text == after
    ast.parse(after)


# script, line, name, what its sentence says
OPEN = {
    "unknown name": ("import os\nfrom executorch.exir import nosuch\n", 2, "exir.nosuch", ""),
    "documented elsewhere": (
        "from executorch.exir.backend import Partitioner\n",
        1,
        "exir.backend.Partitioner",
        "from compiler import Partitioner",
    ),
    "misspelt": ("from executorch.exir import to_egde\n", 1, "exir.to_egde", "to_edge"),
    "unknown module": ("import executorch.extension.llm as llm\n", 1, "extension.llm", ""),
    "unknown attribute": (
        "import executorch.exir as e\ne.to_edge\n\ne.nosuch(1)\n",
        4,
        "exir.nosuch",
        "",
    ),
    "registered operators": (
        "import executorch.extension.llm.custom_ops\n",
        1,
        "extension.llm.custom_ops",
        "",
    ),
    "a value": (
        "import executorch.exir as e\ne.to_edge\nsetattr(e, 'x', 1)\n",
        3,
        "exir",
        "used as a value",
    ),
    "text": (
        "from unittest import mock\nmock.patch('executorch.exir.to_edge')\n",
        2,
        "exir.to_edge",
        "a string",
    ),
    "star and a name of unknown origin": (
        "from executorch.exir import *\nto_edge(nosuch)\n",
        2,
        "exir.nosuch",
        "import *",
    ),
}


@pytest.mark.parametrize("case", OPEN)
def test_what_is_left_is_named_with_its_line(case: str) -> None:
    script, line, name, words = OPEN[case]
    ported = port_source(script)
    (found,) = ported.missing
    assert (found.line, found.name) == (line, f"executorch.{name}")
    assert words in found.remedy
    assert port_source(ported.text).text == ported.text


def test_names_without_counterpart_keep_their_import() -> None:
    ported = port_source("from executorch.exir import to_edge, nosuch, EdgeCompileConfig\n")
    assert ported.text == (
        "from compiler import to_edge, EdgeCompileConfig\nfrom executorch.exir import nosuch\n"
    )
    ported = port_source("import executorch.exir as e\ne.to_edge(e.nosuch)\n")
    assert ported.text == (
        "import executorch.exir as e\nfrom compiler import to_edge\nto_edge(e.nosuch)\n"
    )


def test_names_gone_from_torch_without_successor_are_said() -> None:
    for script in (
        "from torch._export import capture_pre_autograd_graph\n",
        "import torch\ntorch._export.capture_pre_autograd_graph(m, ())\n",
    ):
        (found,) = port_source(script).missing
        assert found.verdict is PortVerdict.MISSING
        assert "torch.export.export(...).module()" in found.remedy
    (found,) = port_source(
        "import torch\ntorch.ao.quantization.quantize_pt2e.prepare_pt2e\n"
    ).missing
    assert "from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e" in found.remedy


def test_torch_still_lacks_what_is_said_to_be_gone() -> None:
    import importlib

    from inspector.compat.porting.moved import moved_places

    for (module, name), place in moved_places().items():
        try:
            still = hasattr(importlib.import_module(module), name)
        except ImportError:
            still = False
        assert not still, f"{module}.{name}"
        assert hasattr(importlib.import_module(place.module), place.name)


def notebook(*cells: str | list[str]) -> str:
    made = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": one} for one in cells]
    made.insert(1, {"cell_type": "markdown", "metadata": {}, "source": ["import executorch\n"]})
    return json.dumps({"cells": made, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def test_notebook_is_one_script_over_its_cells() -> None:
    text = notebook(
        ["%pip install executorch\n", "import executorch.devtools as d"],
        "d.Inspector\nif x:\n    !ls executorch\nfrom executorch.exir import nosuch",
        ["%%bash\n", "python -m executorch"],
        ["d?\n", "d.BundledProgram"],
    )
    ported = port_notebook(text)
    after = json.loads(ported.text)
    assert ["".join(cell["source"]) for cell in after["cells"]] == [
        "%pip install executorch\nfrom inspector import Inspector\n"
        "from runtime.bundled import BundledProgram",
        "import executorch\n",
        "Inspector\nif x:\n    !ls executorch\nfrom executorch.exir import nosuch",
        "%%bash\npython -m executorch",
        "d?\nBundledProgram",
    ]
    assert isinstance(after["cells"][0]["source"], list)
    assert [(one.cell, one.line, one.name) for one in ported.missing] == [
        (3, 4, "executorch.exir.nosuch")
    ]
    assert port_notebook(ported.text).text == ported.text
    before = json.loads(text)
    for tree in (before, after):
        for cell in tree["cells"]:
            del cell["source"]
    assert before == after


def test_notebook_with_an_error_names_its_cell() -> None:
    with pytest.raises(SyntaxError, match=re.escape("cell 3, line 2")):
        port_notebook(notebook("x = 1", "y = 2\nz = = 3"))
