"""Custom operators that write to their arguments, their kernels, and modules that call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

_SCHEMAS = (
    "fill(Tensor(a!) x, float by) -> ()",
    "swap(Tensor(a!) x, Tensor(b!) y) -> ()",
    "bump(Tensor(a!) x, Tensor y) -> Tensor",
    "bump.out(Tensor(a!) x, Tensor y, *, Tensor(b!) out) -> Tensor(b!)",
    "both(Tensor(a!) x, Tensor(b!) y, Tensor? z=None) -> (Tensor, Tensor)",
    "both.out(Tensor(a!) x, Tensor(b!) y, Tensor? z=None, *, Tensor(c!) s, Tensor(d!) t)"
    " -> (Tensor(c!), Tensor(d!))",
    "unfinished(Tensor(a!) x) -> Tensor",
    "many(Tensor(a!)[] x) -> ()",
)


def _fill(x: torch.Tensor, by: float) -> None:
    x.fill_(by)


def _swap(x: torch.Tensor, y: torch.Tensor) -> None:
    kept = x.clone()
    x.copy_(y)
    y.copy_(kept)


def _bump(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(y)
    return x.sum(0)


def _both(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor | None = None) -> Any:
    x.mul_(2)
    y.sub_(1 if z is None else z)
    return x + y, x - y


KERNELS: dict[str, Callable[..., Any]] = {
    "fill": _fill,
    "swap": _swap,
    "bump": _bump,
    "both": _both,
    "unfinished": lambda x: x.add_(1).clone(),
    "many": lambda x: None,
}
_library = torch.library.Library("etscope_writing", "DEF")
for _schema in _SCHEMAS:
    _library.define(_schema)
for _name, _kernel in KERNELS.items():
    _library.impl(_name, _kernel, "CompositeExplicitAutograd")
own: Any = torch.ops.etscope_writing


def register(registry: Any) -> None:
    """Register the kernels with a runtime of ours."""
    for schema in _SCHEMAS:
        name = schema.partition("(")[0]
        if name in ("fill", "swap") or name.endswith(".out"):
            registry.register(f"etscope_writing::{schema}")(KERNELS[name.removesuffix(".out")])


class Called(nn.Module):
    """Calls a function with a buffer and its inputs."""

    state: torch.Tensor

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("state", torch.arange(6.0).reshape(3, 2))

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(self.state, *inputs)


def _intermediate(state: Any, x: Any) -> Any:
    y = x * 2
    return own.bump(y, x), y


def _intermediate_without_reads(state: Any, x: Any) -> Any:
    return own.bump(x * 2, x)


def _old_value_is_read(state: Any, x: Any) -> Any:
    y = x * 2
    old = y.clone()
    own.fill(y, 3.0)
    return old + 1, y


def _view_of_old_value_is_read(state: Any, x: Any) -> Any:
    y = x * 2
    flat = (y + 0).view(-1)
    kept = flat.view(3, 2)
    changed = kept.clone()
    own.swap(changed, y)
    return flat + 1, changed, y


def _part(state: Any, x: Any) -> Any:
    y = x * 2
    own.fill(y[1], 4.0)
    own.fill(y[:, 1:], 5.0)
    return y


def _transposed(state: Any, x: Any) -> Any:
    y = x * 2
    own.bump(y.t(), x.t())
    return y


def _state(state: Any, x: Any) -> Any:
    return own.bump(state, x)


def _state_is_returned(state: Any, x: Any) -> Any:
    own.bump(state, x)
    return state


def _old_state_is_read(state: Any, x: Any) -> Any:
    old = state * 1
    before = state.clone()
    own.fill(state, 2.0)
    return old, before, state + x


def _state_through_several(state: Any, x: Any) -> Any:
    own.bump(state, x)
    state.mul_(2)
    p, q = own.both(state, x * 3)
    own.fill(state[0], 1.0)
    return p + q + state


def _state_and_intermediate(state: Any, x: Any) -> Any:
    y = x * 2
    own.swap(state, y)
    return y


def _state_not_written_back(state: Any, x: Any) -> Any:
    copy = state.clone()
    own.fill(copy, 1.0)
    return copy + state


def _input(state: Any, x: Any, y: Any) -> Any:
    own.swap(x, y)
    return x + state


def _given(state: Any, x: Any) -> Any:
    y = x * 2
    p, q = own.both(y, x.neg(), x)
    return p, q, y


def _in_a_branch(state: Any, x: Any) -> Any:
    def one(x: Any) -> Any:
        y = x * 2
        r = own.bump(y, x)
        return y + r

    return torch.cond(x.sum() > 0, one, lambda x: x * 1, (x,))


X = torch.arange(6.0).reshape(3, 2) / 4 - 1
CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "intermediate": (_intermediate, (X,)),
    "intermediate_without_reads": (_intermediate_without_reads, (X,)),
    "old_value_is_read": (_old_value_is_read, (X,)),
    "view_of_old_value_is_read": (_view_of_old_value_is_read, (X,)),
    "part": (_part, (X,)),
    "transposed": (_transposed, (X,)),
    "state": (_state, (X,)),
    "state_is_returned": (_state_is_returned, (X,)),
    "old_state_is_read": (_old_state_is_read, (X,)),
    "state_through_several": (_state_through_several, (X,)),
    "state_and_intermediate": (_state_and_intermediate, (X,)),
    "state_not_written_back": (_state_not_written_back, (X,)),
    "input": (_input, (X, X + 1)),
    "given": (_given, (X,)),
    "in_a_branch": (_in_a_branch, (X,)),
    "in_the_other_branch": (_in_a_branch, (X + 2,)),
}


_caches = torch.library.Library("llama", "DEF")  # as the stock library of kernels declares it
_caches.define("update_cache(Tensor value, Tensor(a!) cache, SymInt start_pos) -> Tensor")
_caches.define(
    "update_cache.out(Tensor value, Tensor(a!) cache, SymInt start_pos, *, Tensor(b!) out)"
    " -> Tensor(b!)"
)
_ATTENTION = (
    "(Tensor query, Tensor key, Tensor value, Tensor(a!) key_cache, Tensor(b!) value_cache, "
    "SymInt start_pos, SymInt seq_len, Tensor? attn_mask=None, float drpout_p=0., "
    "bool is_causal=False, float? scale=None"
)
_caches.define(f"sdpa_with_kv_cache{_ATTENTION}) -> Tensor")
_caches.define(f"sdpa_with_kv_cache.out{_ATTENTION}, *, Tensor(c!) out) -> Tensor(c!)")


def _update(value: torch.Tensor, cache: torch.Tensor, start_pos: int) -> torch.Tensor:
    cache[:, start_pos : start_pos + value.shape[1]] = value
    return torch.empty(1)


def _attend(query: Any, key: Any, value: Any, keys: Any, values: Any, *rest: Any) -> torch.Tensor:
    start, count = rest[:2]
    _update(key, keys, start)
    _update(value, values, start)
    seen = torch.ones(count, start + count).tril(start).bool()
    q, k, v = (one.transpose(1, 2) for one in (query, keys, values))
    out = nn.functional.scaled_dot_product_attention(
        q, k[:, :, : start + count], v[:, :, : start + count], attn_mask=seen
    )
    return out.transpose(1, 2).contiguous()


_caches.impl("update_cache", _update, "CPU")
_caches.impl("update_cache", lambda value, *_: value.new_empty((1,)), "Meta")
_caches.impl("sdpa_with_kv_cache", _attend, "CPU")
_caches.impl("sdpa_with_kv_cache", lambda query, *_: torch.empty_like(query), "Meta")
caches: Any = torch.ops.llama


class Attention(nn.Module):
    """Attends to what it was given before, over caches that operators of the wheel write."""

    keys: torch.Tensor
    values: torch.Tensor
    results: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("keys", "values", "results"):
            self.register_buffer(name, torch.zeros(1, 16, 2, 8))
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> Any:
        place: Any = at.item()
        torch._check(place >= 0)
        torch._check(place + x.shape[1] <= 16)
        torch._check(place < 16)
        given = [layer(x).view(1, -1, 2, 8) for layer in self.layers]
        out = caches.sdpa_with_kv_cache(
            *given, self.keys, self.values, place, x.shape[1], None, 0.0, True
        )
        caches.update_cache(out, self.results, place)
        return out, self.results.sum(1), self.keys * 2
