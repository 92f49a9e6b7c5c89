"""What a comparison that cannot be done says: one sentence with the file."""

from __future__ import annotations

import errno
import tempfile

import pytest

from inspector.worker.gap_job import InputsError, failure

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left", "/a/b"), "/a/b: No space left"),
        (
            OSError(errno.ENOSPC, "No space left"),
            f"temporary files in {tempfile.gettempdir()}: No space left",
        ),
        (InputsError("a.pt: expected inputs"), "a.pt: expected inputs"),
    ],
)
def test_failure_of_a_comparison_names_the_file(error: Exception, sentence: str) -> None:
    assert failure(error)["sentence"] == sentence
