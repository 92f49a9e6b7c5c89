"""Our kernels of attention on caches of other layouts and sizes, beside torch's attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.errors import ExecutionError
from runtime.kernels.attention import TABLE

attend: Any = TABLE["llama::custom_sdpa.out"].run
update: Any = TABLE["llama::update_cache.out"].run


def _plain(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, start: int) -> torch.Tensor:
    length = query.shape[1]
    key, value = key[:, : start + length], value[:, : start + length]
    hidden = torch.ones(length, start + length, dtype=torch.bool).tril(start)
    many = query.shape[2] // key.shape[2]
    q, k, v = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
    k, v = k.repeat_interleave(many, 1), v.repeat_interleave(many, 1)
    scores = q @ k.transpose(-1, -2) / query.shape[-1] ** 0.5
    weights = scores.masked_fill(~hidden, float("-inf")).softmax(-1)
    return (weights @ v).transpose(1, 2)


@pytest.mark.parametrize("layout", ["in order", "by head", "part of a buffer"])
@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("start", [0, 5])
@pytest.mark.parametrize("batch", [1, 2])
def test_caches_may_lie_in_memory_in_any_order(
    layout: str, length: int, start: int, batch: int
) -> None:
    torch.manual_seed(length)
    query = torch.randn(batch, length, 4, 8)
    key, value = (torch.randn(batch, 10, 2, 8) for _ in range(2))
    if layout == "by head":
        key, value = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (key, value))
    elif layout == "part of a buffer":
        key, value = torch.randn(batch, 12, 4, 8)[:, 1:11].chunk(2, dim=2)
    new = torch.randn(batch, length, 2, 8)
    expected = key.clone()
    expected[:, start : start + length] = new
    assert update(new, key, start).shape == (1,)
    assert torch.equal(key, expected)
    found = attend(query, key, value, start, None, 0.0, True)
    torch.testing.assert_close(found, _plain(query, key, value, start), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (-2, 3), (10, 1), (8, 3)])
def test_positions_outside_of_the_cache_are_refused(start: int, length: int) -> None:
    cache = torch.zeros(1, 10, 2, 8)
    new = torch.ones(1, length, 2, 8)
    with pytest.raises(ExecutionError, match="outside of a cache of 10"):
        update(new, cache, start)
    assert not cache.any()
    with pytest.raises(ExecutionError, match="outside of a cache of 10"):
        attend(new, cache, cache, start, None, 0.0, True)


@pytest.mark.parametrize("masked", [False, True])
def test_caches_of_different_lengths_are_refused(*, masked: bool) -> None:
    whole = torch.zeros(1, 10, 2, 8)
    mask = torch.zeros(1, 10) if masked else None
    with pytest.raises(ExecutionError, match="keys have 10 positions, values have 4"):
        attend(whole[:, :1], whole, whole[:, :4], 5, mask)
