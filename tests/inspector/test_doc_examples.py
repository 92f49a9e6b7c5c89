"""The Python examples of the documents run as printed, page by page, on files of a small model."""

from __future__ import annotations

import copy
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler import to_edge, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from inspector.files.load import load_session
from runtime import Runtime
from tests.architecture.tree import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # torch about its own tree specs
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Output Buffer not found"),
]

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPENS_A_WINDOW = "visualize("
SAVED = ("model.pte", "model.etrecord", "run.etdp", "run.debug")


class Net(torch.nn.Module):
    """Layers with the names of the examples: a delegate of several nodes, and one node outside."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(5))
        self.head = torch.nn.Softmax(-1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(torch.erf(x))


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what the examples take as given, in a folder with the files that they name."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    x = torch.ones(2, 2)
    model = Net().eval()
    exported = torch.export.export(model, (x,))
    edge = to_edge_transform_and_lower(
        exported, partitioner=[XnnpackPartitioner()], generate_etrecord=True
    )
    manager = copy.deepcopy(edge).to_executorch()
    Path("model.pte").write_bytes(manager.buffer)
    record = manager.get_etrecord()
    record.update_representative_inputs([x])
    record.save("model.etrecord")
    program = Runtime.get().load_program("model.pte", enable_etdump=True, debug_buffer_size=1)
    program.load_method("forward").execute((x,))
    program.write_etdump_result_to_file("run.etdp", "run.debug")
    folder = Path("runs/mobilenet")
    folder.mkdir(parents=True)
    for name in SAVED:
        shutil.copy(name, folder)
    return {
        "torch": torch,
        "x": x,
        "inputs": (x,),
        "calls": [(x,)],
        "progress": lambda *_: None,
        "model": model,
        "exported": exported,
        "exported_program": exported,
        "edge": edge,
        "edge_manager": edge,
        "graph_module": edge.exported_program().graph_module,
        "manager": manager,
        "executorch_program_manager": manager,
        "session": load_session(list(SAVED)),
        "to_edge": to_edge,
        "MyPartitioner": XnnpackPartitioner,
    }


@pytest.mark.parametrize("page", ["docs/python-api.md", "docs/compiler.md"])
def test_examples_of_a_page_run(page: str, names: dict[str, Any]) -> None:
    blocks = BLOCK.findall((ROOT / page).read_text("utf-8"))
    failed = {}
    for number, block in enumerate(blocks):
        if OPENS_A_WINDOW in block:
            continue
        try:
            exec(compile(block, f"{page}#{number}", "exec"), names)
        except Exception as error:  # noqa: BLE001 - reported with its block, all together
            failed[f"{page}#{number}"] = f"{type(error).__name__}: {error}"
    assert failed == {}
