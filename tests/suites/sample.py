"""The sample that runs with every test run, and the tests of it that have to pass."""

from __future__ import annotations

from pathlib import Path

from tests.suites.table import Outcomes, suite_of

PASSING = Path(__file__).parent / "passing.txt"

# Part -> suites, or files and folders of the wheel. Together three minutes on two idle cores.
PARTS: dict[str, tuple[str, ...]] = {
    "runtime": ("runtime", "pybindings", "training", "flat_tensor", "harness"),
    "export": ("export",),
    "exir": (
        "exir/_serialize/test",
        "exir/backend/test/test_delegate_map_builder.py",
        "exir/backend/test/test_group_partitioner.py",
        "exir/backend/test/test_lowered_backend_module.py",
        "exir/backend/test/test_utils.py",
        "exir/operator/test",
        "exir/program/test/test_fake_program.py",
        "exir/tests/test_banked_memory_planning.py",
        "exir/tests/test_common.py",
        "exir/tests/test_device_copy_ops.py",
        "exir/tests/test_dim_order_utils.py",
        "exir/tests/test_pass_infra.py",
        "exir/tests/test_reinplace_pass.py",
        "exir/tests/test_remove_unused_parameters_pass.py",
        "exir/tests/test_verification.py",
        "exir/verification/test",
    ),
    "devtools": (
        "devtools/bundled_program/test/test_config.py",
        "devtools/etdump",
        "devtools/etrecord",
        "devtools/inspector/tests",
        "devtools/intermediate_output_tap/tests/test_selectors.py",
        "devtools/pte_tool",
    ),
    "xnnpack": (
        "backends/transforms/test/test_channels_last_ops.py",
        "backends/transforms/test/test_permute_optimization_passes.py",
        "backends/transforms/test/test_replace_ops_with_channels_last_variants.py",
        "backends/xnnpack/test/ops/test_add.py",
        "backends/xnnpack/test/ops/test_linear.py",
        "backends/xnnpack/test/ops/test_softmax.py",
        "backends/xnnpack/test/recipes",
        "backends/xnnpack/test/serialization",
        "backends/xnnpack/test/test_xnnpack_partitioner.py",
    ),
}


def passing() -> set[str]:
    """Return the ids of the tests that were seen to pass."""
    return set(PASSING.read_text("utf-8").split("\n")) - {""}


def record(outcomes: Outcomes) -> None:
    """Add the tests that pass, of the sample or not; none is ever taken away."""
    passed = {test for test, outcome in outcomes.items() if outcome["outcome"] == "passed"}
    PASSING.write_text("".join(f"{test}\n" for test in sorted(passing() | passed)), "utf-8")


def in_part(test: str, part: str) -> bool:
    """Tell whether a test is one of a part of the sample."""
    file = test.partition("::")[0].removeprefix("executorch_tests/")
    return suite_of(test) in PARTS[part] or any(
        file == name or file.startswith(f"{name}/") for name in PARTS[part]
    )
