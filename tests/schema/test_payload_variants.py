"""Payloads of releases nobody here has seen: each opens, adds up, and works in every verb."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from schema.program import decode, encode
from schema.program import model as m
from tests.inspector.cli_runs import run, valid
from tests.schema.payload_files import DATA, Blob, blob, different_blobs
from tests.schema.payload_variants import Variant, variants
from tests.schema.test_payload import assert_graph, assert_parts

pytestmark = pytest.mark.slow

NAMES = ("xnnpack", "xnnpack_q8", "m2_xnn", "mps", "native_inline", "tosa_fp", "vulkan")
ITEMS = {name: blob(name) for name in (*NAMES, "vgf_fp_0.11.0")}
LEGACY = [item for item in different_blobs() if item.label.startswith("old/")]
VERBS = ("summary", "delegation", "size", "graph", "extract", "tensors")
IN_VERBS = 3


@pytest.mark.parametrize("item", [*ITEMS.values(), *LEGACY], ids=str)
def test_variant_is_read_and_adds_up(item: Blob) -> None:
    made = list(variants(item))
    assert len(made) > 30
    for variant in made:
        found = item.decode(variant.data)
        assert_parts(found, variant.data)
        assert found.format != "unreadable", f"{variant}: {found.issues[0].message}"
        assert found.graph is not None
        assert_graph(found.graph)


@pytest.mark.parametrize("name", ["xnnpack", "xnnpack_q8", "m2_xnn", "mps"])
def test_unknown_operator_is_a_node_of_its_own(name: str) -> None:
    item = ITEMS[name]
    before = item.decode()
    newer = next(v for v in variants(item) if v.what == "newer" and "node_union" in v.place)
    found = item.decode(newer.data)
    assert found.graph is not None
    assert before.graph is not None
    assert found.node_count == before.node_count
    targets = [node.target for node in found.graph.calls()]
    changed = set(targets) - {node.target for node in before.graph.calls()}
    assert len(changed) == 1
    assert "199" in changed.pop()


@pytest.mark.parametrize("name", ITEMS)
def test_variant_works_in_every_verb(name: str, tmp_path: Path) -> None:
    drawn = random.Random(name).sample(list(variants(ITEMS[name])), IN_VERBS)
    for number, variant in enumerate(drawn):
        path = tmp_path / f"{number}.pte"
        path.write_bytes(_program(name, variant))
        for verb in VERBS:
            answer = run(verb, path, "--format", "json")
            assert answer.code == 0, f"{variant}: {answer.err}"
            data = valid(answer, verb)["data"]
            if verb == "size":
                assert sum(part["bytes"] for part in data["parts"]) == data["total_bytes"]
            if verb == "delegation":
                assert data["methods"]["forward"]["counting"] == "payload"


def _program(name: str, variant: Variant) -> bytes:
    """Return the program of a payload with another payload inside the flatbuffer."""
    program = decode((DATA / f"corpus/payloads/{name}.pte").read_bytes())
    table, plan = program.table, program.plans[0]
    inline = m.BackendDelegateInlineData(memoryview(variant.data))
    payloads = (*(table.backend_delegate_data or ()), inline)
    place = m.BackendDelegateDataReference(0, len(payloads) - 1)
    delegates = (replace(plan.delegates[0], processed=place), *plan.delegates[1:])
    plans = (replace(plan, delegates=delegates), *program.plans[1:])
    changed = replace(table, execution_plan=plans, backend_delegate_data=payloads)
    return encode(replace(program, table=changed))


def test_vulkan_constant_outside_its_area_is_an_issue_of_its_own() -> None:
    item = ITEMS["vulkan"]
    lost = next(v for v in variants(item) if str(v) == "absent VkBytes.named_key")
    found = item.decode(lost.data)
    assert found.graph is not None
    assert any(constant.data is None for constant in found.constants)
    assert any("constants[0]" in issue.message for issue in found.issues)
