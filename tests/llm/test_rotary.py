"""Angles of positions by the kinds of scaling; beside transformers in test_checkpoints."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from compiler.llm.rotary import Frequencies, RopeError, rotary_frequencies, turns_at

SIZE, THETA = 8, 10000.0
PLAIN = torch.tensor([THETA ** (-at / SIZE) for at in (0, 2, 4, 6)])
SHORT, LONG = [1.0, 1.1, 1.2, 1.3], [2.0, 3.0, 4.0, 5.0]


def angles(length: int, **scaling: Any) -> Frequencies:
    return rotary_frequencies(SIZE, length, THETA, scaling)


def test_long_factors_hold_for_calls_that_end_beyond_the_original_context() -> None:
    given = {"short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": 16}
    found = angles(64, rope_type="longrope", max_position_embeddings=64, **given)
    assert found.factor == math.sqrt(1 + math.log(4) / math.log(16))
    for last, factors in ((15, SHORT), (16, LONG), (50, LONG)):
        cosine, _ = turns_at(torch.arange(last - 1, last + 1), found)
        expected = (last * PLAIN / torch.tensor(factors)).cos() * found.factor
        assert torch.allclose(cosine[1, :4], expected)
    within = angles(16, rope_type="longrope", max_position_embeddings=64, **given)
    assert within.is_fixed


def test_a_dynamic_base_grows_with_what_a_call_exceeds_the_training_by() -> None:
    found = angles(64, rope_type="dynamic", factor=2.0, max_position_embeddings=16)
    assert torch.allclose(found.rows[0], PLAIN)
    base = THETA * (2.0 * 40 / 16 - 1.0) ** (8 / 6)
    expected = torch.tensor([39 * base ** (-at / SIZE) for at in (0, 2, 4, 6)]).sin()
    assert torch.allclose(turns_at(torch.tensor([39]), found)[1][0, 4:], expected, atol=1e-6)
    assert torch.equal(found.rows[-1], rotary_frequencies(SIZE, 64, base_at(64)).rows[0])
    assert angles(16, rope_type="dynamic", factor=2.0, max_position_embeddings=16).is_fixed


def base_at(length: int) -> float:
    return THETA * (2.0 * length / 16 - 1.0) ** (8 / 6)


def test_yarn_keeps_fast_turns_and_divides_slow_ones() -> None:
    given = {"factor": 4.0, "original_max_position_embeddings": 16}
    found = angles(64, rope_type="yarn", **given)
    assert torch.allclose(found.rows[0, :1], PLAIN[:1])
    assert torch.allclose(found.rows[0, 1:], PLAIN[1:] / 4)
    assert found.factor == 0.1 * math.log(4) + 1
    wider = {"factor": 4.0, "original_max_position_embeddings": 64, "attention_factor": 1.5}
    blended = angles(256, rope_type="yarn", **wider)
    assert blended.factor == 1.5
    assert torch.allclose(blended.rows[0, 1], PLAIN[1] * (0.5 + 0.5 / 4))  # pair 1 of 0 to 2
    end = 8 * math.log(64 / (2 * math.pi)) / (2 * math.log(THETA))
    slow = 1 / end
    exact = angles(256, rope_type="yarn", truncate=False, **wider).rows[0, 1]
    assert torch.allclose(exact, PLAIN[1] * (1 - slow + slow / 4))
    both = angles(64, rope_type="yarn", mscale=0.5, mscale_all_dim=0.25, **given).factor
    assert both == (0.05 * math.log(4) + 1) / (0.025 * math.log(4) + 1)


_LONGROPE = {"rope_type": "longrope", "original_max_position_embeddings": 8}


@pytest.mark.parametrize(
    ("scaling", "words"),
    [
        ({"rope_type": "dynamic", "factor": 2.0}, "max_position_embeddings: expected a positive"),
        ({"rope_type": "yarn", "factor": 2.0}, "original_max_position_embeddings: expected"),
        ({"rope_type": "longrope", "short_factor": [1.0]}, "max_position_embeddings: expected a"),
        ({**_LONGROPE, "short_factor": [1.0]}, "short_factor: expected 4 numbers"),
    ],
)
def test_members_that_are_missing_are_named(scaling: dict[str, Any], words: str) -> None:
    with pytest.raises(RopeError, match=words):
        angles(64, **scaling)
