"""A seeded slice of the payload campaign; `python -m tests.fuzz.payloads` runs longer ones."""

from __future__ import annotations

import pytest

from tests.fuzz.payloads import run, targets

pytestmark = pytest.mark.slow

CASES = 1200


def test_damaged_payloads_are_refused_in_one_sentence_or_read_whole() -> None:
    found = run(CASES)
    assert found.failures == []
    assert {"refused", "read", "described", "program opened"} <= set(found.outcomes)


def test_every_backend_that_has_a_decoder_is_damaged() -> None:
    assert len({target.backend_id for target in targets()}) >= 15
    assert 5 * len(targets()) <= CASES
