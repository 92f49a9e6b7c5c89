"""Every tensor of TOSA payloads beside Arm's reference model; needs tosa-tools."""

from __future__ import annotations

import pytest
import torch

from runtime import Runtime
from runtime.backends.graph.engine import GraphEngine
from runtime.backends.tosa import TosaBackend
from schema import payloads
from schema.graph import NodeKind
from tests.conftest import DATA

pytestmark = pytest.mark.vendor
pytest.importorskip("tosa_reference_model", reason="tosa-tools is not installed")
FOLDER = DATA / "backends"
EDGES = (0.0, -0.0, 1e-8, 65504.0, -65504.0)


def _inputs(engine: GraphEngine, seed: int) -> list[torch.Tensor]:
    """Return inputs over the range of their dtypes, extreme values among them."""
    torch.manual_seed(seed)
    found: list[torch.Tensor] = []
    for name in engine.graph.inputs:
        meta = engine.graph.values[name].tensor
        assert meta is not None
        sizes = [int(size) for size in meta.sizes]
        if meta.dtype.startswith("float"):
            given = torch.randn(sizes) * 4
            given.view(-1)[:: max(1, given.numel() // 4)] = EDGES[seed % len(EDGES)]
        elif meta.dtype in ("int8", "int16"):
            edge = torch.iinfo(getattr(torch, meta.dtype))
            given = torch.randint(edge.min, edge.max + 1, sizes).to(getattr(torch, meta.dtype))
            given.view(-1)[:1] = edge.min
            given.view(-1)[-1:] = edge.max
        elif meta.dtype == "bool":
            given = torch.rand(sizes) > 0.5
        else:
            given = torch.randint(0, 2, sizes, dtype=torch.int32)  # indices of some operators
        found.append(given)
    return found


def _dtype(engine: GraphEngine, name: str) -> str:
    meta = engine.graph.values[name].tensor
    return "" if meta is None else meta.dtype


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("tosa_*.pte")))
def test_each_tensor_equals_the_reference_model(name: str) -> None:
    from tests.runtime.graph.reference_model import reference_values

    program = Runtime().load_program(FOLDER / f"{name}.pte").file
    for delegate in program.plans[0].delegates:
        data = bytes(program.delegate_data(delegate))
        engine = GraphEngine(payloads.decode(delegate.id, data), TosaBackend.table, 0)
        made = {
            name: node.target
            for node in engine.graph.nodes
            if node.kind is NodeKind.CALL
            for name in node.outputs
            if _dtype(engine, name) != "int48"  # the model's binding does not return these
        }
        for seed in range(3):
            inputs = _inputs(engine, seed)
            engine.begin(inputs)
            for index in range(len(engine.graph.nodes)):
                engine.run_node(index)
            for (value, kind), right in zip(
                made.items(), reference_values(data, list(made), inputs), strict=True
            ):
                found = engine.value(engine.places[value])
                where = f"{kind} {value}"
                if not found.is_floating_point():
                    assert torch.equal(found.long(), right.long().reshape(found.shape)), where
                    continue
                torch.testing.assert_close(
                    found,
                    right.reshape(found.shape),
                    rtol=1e-5,
                    atol=1e-5,
                    equal_nan=True,
                    msg=lambda text, where=where: f"{where}: {text}",
                )
