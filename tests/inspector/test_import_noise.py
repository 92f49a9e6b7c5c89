"""What packages print while they are imported is hidden, everything else is not."""

from __future__ import annotations

import pytest

from inspector.jobs.import_noise import is_import_noise


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        (
            "Failed to load /p/torchao/_C_mxfp8.cpython-310-x86_64-linux-gnu.so: Could not load"
            " this library: /p/torchao/_C_mxfp8.cpython-310-x86_64-linux-gnu.so",
            True,
        ),
        ("Failed to load _MLModelProxy: No module named 'coremltools.libcoremlpython'", True),
        ("<enum 'KernelPreference'> is an Enum subclass and is now natively supported", True),
        ("scikit-learn version 1.9.1 is not supported. Minimum required version: 0.17.", True),
        ("Torch version 2.13.0+cpu has not been tested with coremltools.", True),
        ("I tokenizers:regex.cpp:40] Registering override fallback regex", True),
        ("Failed to load weights.pt", False),
        ("Op not supported:  torch.ops.aten.scatter_add.default", False),
        ("my model: Failed to load /p/x.so: Could not load this library", False),
        ("", False),
    ],
)
def test_only_lines_about_an_import_are_hidden(line: str, hidden: bool) -> None:
    assert is_import_noise(line) is hidden
