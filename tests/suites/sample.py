"""The sample that runs with every test run, and the tests of it that have to pass."""

from __future__ import annotations

from pathlib import Path

from tests.suites.table import Outcomes, suite_of

PASSING = Path(__file__).parent / "passing.txt"

_OPERATORS = (
    "avgpool2d bmm clamp clone gelu leaky_relu max_dim maximum pow quantize_per_tensor slice_copy "
    "softmax sub to_copy"
)
# Part -> suites, or files and folders of the wheel that take few seconds. Each part is a process
# that runs for one and a half minutes on an idle core.
PARTS: dict[str, tuple[str, ...]] = {
    "export": (
        "runtime",
        "pybindings",
        "training",
        "flat_tensor",
        "harness",
        "export",
        "devtools/backend_debug",
        "devtools/bundled_program",
        "devtools/etdump",
        "devtools/etrecord",
        "devtools/inspector/tests",
        "devtools/intermediate_output_tap/tests/test_reducers.py",
        "devtools/intermediate_output_tap/tests/test_selectors.py",
        "devtools/intermediate_output_tap/tests/test_strip_pass.py",
        "devtools/intermediate_output_tap/tests/test_tap_pass.py",
        "devtools/pte_tool",
        "devtools/size_analysis_tool",
    ),
    "exir": (
        "exir/_serialize/test",
        "exir/backend/test/test_delegate_map_builder.py",
        "exir/backend/test/test_utils.py",
        "exir/program/test/test_fake_program.py",
        "exir/tests/test_banked_memory_planning.py",
        "exir/tests/test_common.py",
        "exir/tests/test_device_copy_ops.py",
        "exir/tests/test_dim_order_utils.py",
        "exir/tests/test_dynamic_shape_propagation.py",
        "exir/tests/test_pass_infra.py",
        "exir/tests/test_reinplace_pass.py",
        "exir/tests/test_remove_unused_parameters_pass.py",
        "exir/tests/test_tensor.py",
        "exir/tests/test_verification.py",
        "exir/verification/test",
        "backends/transforms/test/test_channels_last_ops.py",
        "backends/transforms/test/test_create_mutable_buffer.py",
        "backends/transforms/test/test_decompose_channels_last_pass.py",
        "backends/transforms/test/test_permute_optimization_passes.py",
        "backends/transforms/test/test_replace_ops_with_channels_last_variants.py",
        *(f"backends/xnnpack/test/ops/test_{name}.py" for name in _OPERATORS.split()),
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
