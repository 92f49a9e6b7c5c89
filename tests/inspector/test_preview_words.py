"""What a preview says of a change: nodes are told apart by where they come from, not by name."""

from __future__ import annotations

import pytest

from inspector.jobs.preview import (
    MethodDifference,
    MethodPreview,
    NodePreview,
    PartitionPreview,
    Preview,
)

XNN, OTHER = "XnnpackBackend", "OtherBackend"


def method(*nodes: tuple[str, str, str, int | None], backends: tuple[str, ...]) -> MethodPreview:
    """Return a method of (name, operator, exported, partition)."""
    calls = tuple(NodePreview(name, op, part, exported) for name, op, exported, part in nodes)
    parts = tuple(
        PartitionPreview(
            f"tag{at}", backend, "P", tuple(one.name for one in calls if one.partition == at)
        )
        for at, backend in enumerate(backends)
    )
    return MethodPreview(calls, parts, (), ())


def words(base: MethodPreview, found: MethodPreview) -> str:
    return Preview({"forward": found}).against(Preview({"forward": base}))["forward"].words


WHOLE = method(
    ("aten_hardswish_default", "aten.hardswish.default", "hardswish", 0),
    ("aten_add_tensor", "aten.add.Tensor", "add", 0),
    ("aten_mul_tensor", "aten.mul.Tensor", "mul", 0),
    backends=(XNN,),
)
IN_PARTS = method(
    ("aten_add_tensor", "aten.add.Tensor", "hardswish", None),
    ("aten_mul_tensor", "aten.mul.Tensor", "hardswish", None),
    ("aten_add_tensor_1", "aten.add.Tensor", "add", 0),
    ("aten_mul_tensor_1", "aten.mul.Tensor", "mul", 0),
    backends=(XNN,),
)


def test_nodes_whose_names_were_counted_on_stay_where_they_were() -> None:
    assert words(WHOLE, IN_PARTS) == "XnnpackBackend loses 1 node"
    assert words(IN_PARTS, WHOLE) == "XnnpackBackend gains 1 node"
    assert words(WHOLE, WHOLE) == "nothing changes"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_equal_operators_of_one_source_are_counted_each(count: int) -> None:
    taken = [(f"a_{n}", "aten.add.Tensor", "gru", 0) for n in range(3)]
    left = [(f"b_{n}", "aten.add.Tensor", "gru", 0 if n >= count else None) for n in range(3)]
    found = words(method(*taken, backends=(XNN,)), method(*left, backends=(XNN,)))
    assert found == f"XnnpackBackend loses {count} node{'s' * (count > 1)}"


def test_node_that_goes_to_another_backend_is_lost_and_gained() -> None:
    base = method(("a", "x", "a", 0), ("b", "x", "b", 1), backends=(XNN, OTHER))
    found = method(("a", "x", "a", 1), ("b", "x", "b", 0), backends=(XNN, OTHER))
    assert words(base, found) == (
        "OtherBackend gains 1 and loses 1 node, XnnpackBackend gains 1 and loses 1 node"
    )


@pytest.mark.parametrize(
    ("partitions", "boundaries", "copied", "said"),
    [
        (-51, -112, -53_437_440, "51 partitions fewer, 112 boundaries fewer, 50.96 MiB less over"),
        (1, 1, 1536, "1 partition more, 1 boundary more, 1.5 KiB more over boundaries"),
        (0, -1, 12, "1 boundary fewer, 12 B more over boundaries"),
        (2, 0, None, "2 partitions more"),
        (0, 0, 0, "nothing changes"),
    ],
)
def test_what_changes_is_said_with_units(
    partitions: int, boundaries: int, copied: int | None, said: str
) -> None:
    found = MethodDifference({}, {}, partitions, boundaries, copied, 0)
    assert found.words.startswith(said)
