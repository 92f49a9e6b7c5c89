"""Reasons out of log records, in the forms that partitioners of the package use."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from compiler.partition.logged_reasons import harvesting

NODES = ("aten.mm.default", "aten_add_tensor", "aten_add_tensor_1", "aten_mm_default", "x")
TABLE = """
╒═════════════════╤═════════════════╤════════════╤══════════════════╕
│ Node name       │ Target          │ Torch func │ Reason           │
╞═════════════════╪═════════════════╪════════════╪══════════════════╡
│ aten_mm_default │ aten.mm.default │ None       │ rank 5 is beyond │
╘═════════════════╧═════════════════╧════════════╧══════════════════╛
"""


def why(node: str, reason: str) -> object:
    class Why(SimpleNamespace):
        def __str__(self) -> str:
            return f"WhyNoPartition: Node {self.node} was not partitioned because {self.reason}."

    return Why(node=SimpleNamespace(name=node), reason=reason)


CASES: list[tuple[Callable[[logging.Logger], None], dict[str, list[str]]]] = [
    (lambda log: log.debug(why("aten_mm_default", "too big")), {"aten_mm_default": ["too big"]}),
    (
        lambda log: log.debug(
            "WhyNoPartition: Node %s was not partitioned because %s.", "aten_mm_default", "too\nbig"
        ),
        {"aten_mm_default": ["too\nbig"]},
    ),
    (lambda log: log.info(TABLE), {"aten_mm_default": ["rank 5 is beyond"]}),
    (
        lambda log: log.info("Due to [no kernel], skipping aten_add_tensor_1: (1, 2)"),
        {"aten_add_tensor_1": ["Due to [no kernel], skipping aten_add_tensor_1: (1, 2)"]},
    ),
    (
        lambda log: log.info("Due to [op args not supported], skipping f32 = aten.mm.default(f32)"),
        {
            "aten.mm.default": [
                "Due to [op args not supported], skipping f32 = aten.mm.default(f32)"
            ]
        },
    ),
    (lambda log: log.info("included: aten.mm.default"), {}),
    (lambda log: log.info("found 3 subgraphs"), {}),
    (lambda log: log.info("%d", "no number"), {}),
    (
        lambda log: any(log.debug(why("x", f"reason {n % 5}")) for n in range(9)),
        {"x": ["reason 0", "reason 1", "reason 2"]},
    ),
]


@pytest.mark.parametrize("name", ["executorch", "executorch.backends.demo.partitioner"])
@pytest.mark.parametrize(("log", "expected"), CASES)
def test_harvest_takes_what_is_said_about_a_node(
    log: Callable[[logging.Logger], None], expected: dict[str, list[str]], name: str
) -> None:
    logger = logging.getLogger(name)
    logger.setLevel(logging.ERROR)  # as a backend may have chosen for itself
    try:
        with harvesting(NODES, lambda *_, **__: None) as harvest:
            log(logger)
        assert logger.level == logging.ERROR
    finally:
        logger.setLevel(logging.NOTSET)
    assert {node: [one.text for one in found] for node, found in harvest.found.items()} == expected


def test_harvest_passes_warnings_on_and_leaves_other_packages_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[str] = []
    with harvesting(NODES, lambda _kind, **content: told.append(content["text"])):
        logging.getLogger("executorch.exir").warning("aten_mm_default is odd")
        logging.getLogger("elsewhere").warning("aten_mm_default is even")
    assert told == ["executorch.exir: aten_mm_default is odd"]
    assert [record.name for record in caplog.records] == ["elsewhere"]
