"""What a decoder of ``transformers`` keeps from call to call, as buffers that an export follows."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import nn

from compiler.llm.size_checks import FamilyError
from compiler.untyped import check

Tensor = torch.Tensor
# Of a layer with attention, also of one that first looks for what to attend to.
_BY_POSITION = ("keys", "values", "indexer_keys")
_COUNTS = ("cumulative_length", "indexer_cumulative_length")
_RECURRENT = ("conv_states", "recurrent_states")  # of a layer without, each by its number
_KEYWORDS = ("cache", "cache_params")  # of state-space models, by release of the package
_COUNTED = "embed_positions"  # of families that count the tokens before in Python, as OPT does


@dataclass(frozen=True, slots=True)
class StateBuffer:
    """A tensor of the state.

    Attributes:
        name: of its buffer
        holder: that the package reads it from
        key: under which it does
    """

    name: str
    holder: dict[Any, Any]
    key: Any


@dataclass(frozen=True, slots=True)
class DecoderState:
    """The state of a decoder.

    Attributes:
        cache: of the package
        keyword: under which its modules take it
        attention: keys, values and positions
        recurrent: what depends on all earlier tokens
        mask: of all positions for families that count those of a mask, None for others
        positioned: whether its modules take positions, which some else compute as numbers of Python
        counting: whether the cache returns the number of earlier tokens, not a tensor with it
    """

    cache: Any
    keyword: str
    attention: Sequence[StateBuffer]
    recurrent: Sequence[StateBuffer]
    mask: Tensor | None = None
    positioned: bool = False
    counting: bool = False

    @property
    def kept(self) -> Sequence[StateBuffer]:
        """Return all of it."""
        return (*self.attention, *self.recurrent)

    def enter(
        self, buffers: Mapping[str, Tensor], position: Tensor, tokens: Tensor
    ) -> dict[str, Any]:
        """Let the package use buffers from a position on; return what to call a model with.

        A text that begins at position 0 finds no state of an earlier one.
        """
        for kept in self.kept:
            kept.holder[kept.key] = buffers[kept.name]
        for kept in self.attention:
            if kept.key in _COUNTS:
                kept.holder[kept.key].copy_(position[0])
        for kept in self.recurrent:
            held = kept.holder[kept.key]
            held.copy_(torch.where(position == 0, torch.zeros_like(held), held))
        given: dict[str, Any] = {self.keyword: self.cache, "use_cache": True}
        if self.positioned or self.mask is not None:
            given["position_ids"] = (torch.arange(tokens.shape[1]) + position).unsqueeze(0)
        if self.mask is not None:
            given["attention_mask"] = self.mask
            if self.counting:
                self._count(position, tokens.shape[1], self.mask.shape[1])
        return given

    def as_counting(self, length: int) -> DecoderState:
        """Return it for modules that make tensors as long as the text so far, or slice by it.

        An export follows a number there, and no size that is computed from a tensor twice.
        """
        mask = torch.ones((1, length), dtype=torch.int64)
        return replace(self, mask=mask, counting=True)

    def _count(self, position: Tensor, tokens: int, length: int) -> None:
        """Let the cache return the number of earlier tokens, which leaves room for new ones."""
        earlier = position[0].item()
        check(earlier >= 0)
        check(earlier + tokens <= length)

        def get_seq_length(**_: object) -> Any:  # noqa: ANN401 - a symbol in an export
            return earlier

        self.cache.get_seq_length = get_seq_length


def decoder_state(package: Any, model: nn.Module, length: int) -> DecoderState:  # noqa: ANN401
    """Return the empty state of a model, with the sizes that a call of it with one token has.

    Args:
        package: ``transformers``
        model: on the device meta its results are not compared
        length: positions

    Raises: FamilyError for families whose state has no fixed sizes
    """
    untyped: Any = model
    text = untyped.config.get_text_config()
    text.use_cache = True
    try:
        cache: Any = package.StaticCache(config=_decoder_config(text), max_cache_len=length)
        cache.layers[:] = [_whole(one, length) for one in cache.layers]
        taken = inspect.signature(untyped.forward).parameters
        keyword = next((name for name in _KEYWORDS if name in taken), "past_key_values")
        state = {keyword: cache, "use_cache": True}
        first = torch.zeros((1, 1), dtype=torch.int64, device=untyped.device)
        with torch.no_grad():
            model.eval()(input_ids=first, **state)
    except Exception as error:
        raise _refused(untyped, one_line(error)) from error
    attention = [
        StateBuffer(f"{name}_{at}", layer.__dict__, name)
        for at, layer in enumerate(cache.layers)
        for name in (*_BY_POSITION, *_COUNTS)
        if isinstance(getattr(layer, name, None), Tensor)
    ]
    recurrent = [
        StateBuffer(f"{name}_{at}_{number}", held, number)
        for at, layer in enumerate(cache.layers)
        for name in _RECURRENT
        for number, held in _numbered(getattr(layer, name, None))
    ]
    if not attention and not recurrent:
        raise _refused(untyped, "its modules keep nothing in one")
    positioned = "position_ids" in taken and not recurrent
    found = DecoderState(cache, keyword, attention, recurrent, positioned=positioned)
    for kept in found.kept:
        kept.holder[kept.key].zero_()
    return _that_repeats(untyped, found, length)


def _that_repeats(model: Any, state: DecoderState, length: int) -> DecoderState:  # noqa: ANN401
    """Return a state with which calls in turn have the logits of one call, with a mask if needed.

    Families that add a number by distance to attention, as Falcon may, take it from a mask.

    Raises: FamilyError without one
    """
    masked = replace(state, mask=torch.ones((1, length), dtype=torch.int64))
    names: list[str] = [name for name, _ in model.named_modules()]
    counted = any(name.endswith(_COUNTED) for name in names)
    if length == 1 or model.device.type == "meta":
        return masked if counted else state
    words = ""
    plain = replace(state, positioned=False)
    for one in (masked,) if counted else (state, plain, masked):
        try:
            if _repeats(model, one):
                return one
            words = words or "calls of one token each differ from one of all tokens with it"
        except Exception as error:  # noqa: BLE001 - modules of the package raise anything
            words = words or one_line(error)
    raise _refused(model, words)


def _repeats(model: Any, state: DecoderState) -> bool:  # noqa: ANN401
    """Return whether calls of one token each have the logits of a call of two.

    Some families keep a state in their modules, which an export would take for constants: they
    fail, since another text is begun between the calls.
    """
    tokens = torch.tensor([_ordinary_tokens(model.config.get_text_config())])
    empty = {kept.name: torch.zeros_like(kept.holder[kept.key]) for kept in state.kept}
    filled, other = ({name: one.clone() for name, one in empty.items()} for _ in range(2))

    def last_logits(buffers: Mapping[str, Tensor], token: Tensor, position: int) -> Tensor:
        given = state.enter(buffers, torch.tensor([position]), token)
        return model(input_ids=token, **given).logits[0, -1]

    with torch.no_grad():
        whole = model(input_ids=tokens, use_cache=False).logits[0, -1]
        last_logits(filled, tokens[:, :1], 0)
        last_logits(other, tokens[:, 1:], 0)
        last = last_logits(filled, tokens[:, 1:], 1)
    state.enter(empty, torch.tensor([0]), tokens)
    most = 1e-4 if whole.dtype is torch.float32 else 0.1
    return not bool((last - whole).abs().max() > most * whole.abs().max())


def _decoder_config(config: Any) -> Any:  # noqa: ANN401
    """Return the sizes of a decoder; families with an encoder count the layers of that one."""
    if not hasattr(config, "decoder_layers"):
        return config
    whole = copy.deepcopy(config)
    whole.is_encoder_decoder = True  # a decoder alone takes it back
    return whole.get_text_config(decoder=True)


def _ordinary_tokens(config: Any) -> list[int]:  # noqa: ANN401
    """Return two tokens that pad nothing: some families count positions without the padding."""
    known = range(min(3, config.vocab_size))
    found = [token for token in known if token != getattr(config, "pad_token_id", None)]
    return [found[0], found[-1]]


def _refused(model: Any, words: str) -> FamilyError:  # noqa: ANN401
    kind = model.config.model_type
    words = f"transformers has no static cache for {kind!r} ({words})"
    return FamilyError(f"model.use_kv_cache: {words}; export it without")


def state_elements(package: Any, model: nn.Module) -> tuple[int, int]:  # noqa: ANN401
    """Return the elements that a model keeps for each position, and those for all.

    Raises: FamilyError as `decoder_state`
    """
    state = decoder_state(package, model, 1)
    each = sum(one.holder[one.key].numel() for one in state.attention if one.key in _BY_POSITION)
    return each, sum(one.holder[one.key].numel() for one in state.recurrent)


def _numbered(held: object) -> list[tuple[Any, dict[Any, Any]]]:
    found: dict[Any, Any] = cast("dict[Any, Any]", held) if isinstance(held, dict) else {}
    return [(number, found) for number, one in found.items() if isinstance(one, Tensor)]


def _whole(layer: Any, length: int) -> Any:  # noqa: ANN401
    """Return a layer of all positions for one of a window, which masks keep; others as they are.

    Layers of windows move their tensors by branches that an export cannot follow.
    """
    for kind in type(layer).__mro__[1:]:
        fixed = "Static" in kind.__name__ and "Sliding" not in kind.__name__
        if getattr(layer, "is_sliding", False) and fixed:
            return kind(max_cache_len=length)
    return layer


def one_line(error: BaseException) -> str:
    """Return the message of an error of the package, as one short line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
