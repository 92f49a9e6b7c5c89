"""Decoders of other families: modules of the ``transformers`` package over its static cache.

Their code is that of the installed package; a checkpoint brings sizes and safetensors only.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import torch
from torch import nn
from typing_extensions import override

from compiler.llm.attention import CacheOptions
from compiler.llm.config import LlmConfig, LlmConfigError
from compiler.llm.safetensors import CheckpointError
from compiler.llm.size_checks import (
    MOST_LAYERS,
    MOST_PARAMETERS,
    FamilyError,
    TransformersSizes,
    member,
)
from compiler.llm.transformers_state import StateBuffer, decoder_state, one_line, state_elements
from compiler.quantize.quiet_imports import import_quietly

Tensor = torch.Tensor
_LARGEST = 1 << 40  # of any size in a configuration; their products stay within 64 bits
_OURS_ONLY = (
    "use_sdpa_with_kv_cache",
    "use_attention_sink",
    "quantize_kv_cache",
    "local_global_attention",
)
_OPTIONAL = re.compile(r"getattr\(\s*(?:self\.)?config,\s*\"(\w+)\"")
# Words of the classes of configurations around what is wrong.
_FIELD_ERROR = re.compile(
    r"Validation error for field '(\w+)': TypeError: Field '\w+' expected (.+), got .+"
    r" \(value: (.+)\)"
)
_VALIDATOR = re.compile(r"^Class validation error for validator '\w+': \w+: ")
_INSTALL = "pip install 'etscope[llm]'"


def transformers_sizes(content: Mapping[str, Any], place: str, known: str) -> TransformersSizes:
    """Return the sizes of a decoder that the ``transformers`` package has.

    Args:
        content: of a ``config.json``
        place: begins the message of an error
        known: families that are built here, for the message

    Raises: FamilyError for an unknown family, or sizes that the package refuses
    """
    kind = check_family(content.get("model_type"), place, known)
    package = _package()
    if content.get("quantization_config"):
        name = member(place, "quantization_config")
        raise FamilyError(f"{name}: a quantized checkpoint: not supported")
    _check_sizes(content, place)
    try:
        text = _config(package, content).get_text_config()
        layers, vocabulary = text.num_hidden_layers, text.vocab_size
    except AttributeError as error:
        words = f"{kind!r} has no text to generate ({one_line(error)})"
        raise FamilyError(f"{place}: {words}") from error
    except Exception as error:
        raise FamilyError(_sentence(error, content, place)) from error
    if not isinstance(layers, int) or not 1 <= layers <= MOST_LAYERS:
        raise FamilyError(f"{place}: expected 1 to {MOST_LAYERS:,} layers, found {layers!r:.40}")
    sizes = TransformersSizes(kind, dict(content), vocabulary, layers, place)
    count = sum(one.numel() for one in empty_model(sizes).parameters())
    if count > MOST_PARAMETERS:
        words = f"the sizes make {count:,} parameters, more than {MOST_PARAMETERS:,}"
        raise FamilyError(f"{place}: {words}")
    return sizes


def _sentence(error: Exception, content: Mapping[str, Any], place: str, begin: str = "") -> str:
    """Return an error of the package with the path of the member that it is about, if known."""
    text = one_line(error)
    if found := _FIELD_ERROR.fullmatch(text):
        field, expected, given = found.groups()
        return f"{member(place, field)}: expected {expected}, found {given}"
    if isinstance(error, KeyError) and error.args:
        for path in _paths_of(error.args[0], content):
            return f"{member(place, path)}: unknown value {error.args[0]!r}"
    return f"{place}: {begin}{_VALIDATOR.sub('', text)}"


def _paths_of(value: object, content: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the paths of members with a value."""
    for name, one in content.items():
        if isinstance(one, dict):
            yield from _paths_of(value, cast("dict[str, Any]", one), f"{above}{name}.")
        elif isinstance(one, str) and one == value:
            yield f"{above}{name}"


def check_family(kind: object, place: str, known: str) -> str:
    """Return a ``model_type`` that the package has; see ``transformers_sizes``.

    Raises: FamilyError
    """
    unknown = f"{place}: unknown model_type {kind!r}; available: {known}"
    package = _package()
    if package is None:
        raise FamilyError(f"{unknown}; further ones need transformers: {_INSTALL}")
    if not isinstance(kind, str) or kind not in package.CONFIG_MAPPING:
        raise FamilyError(f"{unknown}, and those of transformers {package.__version__}")
    return kind


def _package() -> Any:  # noqa: ANN401 - a package without types
    """Return ``transformers``, None where it is not installed; it fetches nothing."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        package: Any = import_quietly("transformers")
        import_quietly("transformers.modeling_utils")  # loads torchao where it is installed
    except ImportError:
        return None
    package.utils.logging.set_verbosity_error()
    package.utils.logging.disable_progress_bar()
    return package


def _check_sizes(content: Mapping[str, Any], place: str) -> None:
    for name, value in content.items():
        if isinstance(value, int | float) and not abs(value) < _LARGEST:
            words = f"expected less than {_LARGEST:,}, found {value!r}"
            raise FamilyError(f"{member(place, name)}: {words}")


def _config(package: Any, content: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return the package's configuration, without what would choose or load other code."""
    given = {
        name: value
        for name, value in content.items()
        if name not in ("auto_map", "model_type") and not name.startswith("_")
    }
    config = package.AutoConfig.for_model(content["model_type"], **_with_floats(given))
    config._experts_implementation = "batched_mm"  # the others sort tokens by the expert they chose
    return config


def whole_config(sizes: TransformersSizes) -> Mapping[str, Any]:
    """Return the members of a configuration, the package's defaults included."""
    config: Any = _config(_package(), sizes.content).get_text_config()
    return config.to_dict()


def known_names(content: Mapping[str, Any]) -> frozenset[str]:
    """Return the names that a configuration of a family may have, aliases included.

    Those of the package's class, and what its modules look for, as ``head_dim`` of Qwen3 MoE.
    """
    package = _package()
    config: Any = package.CONFIG_MAPPING[content["model_type"]]
    known = {*config().to_dict(), *getattr(config, "attribute_map", {}), "torch_dtype"}
    return frozenset(known.union(_looked_for(package, config)))


def _looked_for(package: Any, config: Any) -> set[str]:  # noqa: ANN401
    """Return the members of a configuration that the modules of its family take if it has them."""
    try:
        module = sys.modules[package.MODEL_FOR_CAUSAL_LM_MAPPING[config].__module__]
        return set(_OPTIONAL.findall(inspect.getsource(module)))
    except (KeyError, OSError):  # no decoder, or no source
        return set()


def _with_floats(value: Any) -> Any:  # noqa: ANN401 - content of a JSON file
    """Return content in which infinity is a number, which the package writes as an object."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        if [*held] == ["__float__"]:
            return float(held["__float__"])
        return {name: _with_floats(one) for name, one in held.items()}
    if isinstance(value, list):
        return [_with_floats(one) for one in cast("list[Any]", value)]
    return value


def empty_model(sizes: TransformersSizes) -> nn.Module:
    """Return the model without memory for its weights.

    Raises: FamilyError for a family without text generation, or sizes that do not fit together
    """
    with torch.device("meta"):
        return _built(sizes, torch.float32)


def _built(sizes: TransformersSizes, dtype: torch.dtype) -> nn.Module:
    package = _package()
    config = _config(package, sizes.content)
    kind: Any = package.AutoModelForCausalLM
    if type(config) not in package.MODEL_FOR_CAUSAL_LM_MAPPING:
        words = f"transformers has no decoder alone for model_type {sizes.model_type!r}"
        raise FamilyError(f"base.model_class: {words}")
    try:
        try:
            return kind.from_config(config, dtype=dtype, attn_implementation="sdpa")
        except ValueError:  # some families have no fused attention
            return kind.from_config(config, dtype=dtype, attn_implementation="eager")
    except Exception as error:
        words = f"transformers builds no decoder of model_type {sizes.model_type!r}"
        raise FamilyError(_sentence(error, sizes.content, sizes.place, f"{words}: ")) from error


def transformers_model(
    sizes: TransformersSizes, dtype: torch.dtype, weights: Mapping[str, Tensor] | None
) -> nn.Module:
    """Return the package's model with the weights of a checkpoint, or random ones for None.

    Raises: FamilyError, also for sizes that do not fit together; CheckpointError naming missing,
        unknown or unfitting weights
    """
    model = _built(sizes, dtype)
    _check_run(sizes, model)
    if weights is None:
        return model
    untyped: Any = model
    kind: Any = type(model)
    try:
        found, report = kind.from_pretrained(
            None,
            config=untyped.config,
            state_dict=dict(weights),
            dtype=dtype,
            attn_implementation=untyped.config._attn_implementation,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    except Exception as error:
        raise CheckpointError(f"the checkpoint does not load: {one_line(error)}") from error
    _check_loaded(report)
    return found


def _check_run(sizes: TransformersSizes, model: nn.Module) -> None:
    """Run one token, which takes no time on a model without memory.

    Some modules of the package do not run on one; then the model itself decides.

    Raises: FamilyError for sizes with which the modules do not run
    """
    try:
        _run_one_token(empty_model(sizes))
    except Exception:  # noqa: BLE001 - modules of the package raise anything
        try:
            _run_one_token(model)
        except Exception as error:
            words = f"the modules of {sizes.model_type!r} do not run with these sizes"
            raise FamilyError(f"{sizes.place}: {words} ({one_line(error)})") from error


def _run_one_token(model: nn.Module) -> None:
    untyped: Any = model.eval()
    tokens = torch.zeros((1, 1), dtype=torch.int64, device=untyped.device)
    with torch.no_grad():
        untyped(input_ids=tokens, use_cache=False)


def _check_loaded(report: Mapping[str, Any]) -> None:
    unfitting: Any = report.get("mismatched_keys") or ()
    for one in sorted(unfitting, key=str):
        name, given, wanted = one
        words = f"shape {list(given)}, the model has {list(wanted)}"
        raise CheckpointError(f"{name} of the checkpoint has {words}")
    if missing := sorted(report.get("missing_keys") or ()):
        raise CheckpointError(f"the checkpoint has no {', '.join(missing[:5])}")
    if unknown := sorted(report.get("unexpected_keys") or ()):
        raise CheckpointError(f"the model has no {', '.join(unknown[:5])} of the checkpoint")


class TransformersDecoder(nn.Module):
    """A model of the package, called as the decoders here; weights have the names of both."""

    def __init__(self, model: nn.Module, options: CacheOptions, *, all_logits: bool) -> None:
        super().__init__()
        self.cache, self.all_logits = options, all_logits
        self._state = decoder_state(_package(), model, options.length) if options.used else None
        for name, part in model.named_children():
            self.add_module(name, part)
        for kept in self._kept:
            self.register_buffer(kept.name, kept.holder[kept.key], persistent=False)
        self._caller = (model.eval(),)  # in a tuple: its parts are those of this module

    @property
    def _kept(self) -> Sequence[StateBuffer]:
        return () if self._state is None else self._state.kept

    @property
    def is_recurrent(self) -> bool:
        """Return whether it has a state that takes one token a call."""
        return self._state is not None and bool(self._state.recurrent)

    def count_earlier(self) -> bool:
        """Let modules count the earlier tokens in numbers; return whether there is a cache."""
        if self._state is not None:
            self._state = self._state.as_counting(self.cache.length)
        return self._state is not None

    @override
    def forward(self, tokens: Tensor, input_pos: Tensor | None = None) -> Tensor:
        """Return logits of the last position, or of all."""
        (caller,) = self._caller
        state: dict[str, Any] = {"use_cache": False}
        if input_pos is not None and self._state is not None:
            buffers = {kept.name: getattr(self, kept.name) for kept in self._kept}
            state = self._state.enter(buffers, input_pos, tokens)
        logits = caller(input_ids=tokens, **state).logits
        return logits if self.all_logits else logits[:, -1, :]


def kept_elements(model: nn.Module) -> tuple[int, int]:
    """Return the elements that a model keeps for each position, and those for all of a text.

    Raises: FamilyError for families whose state has no fixed sizes
    """
    try:
        return state_elements(_package(), model)
    except FamilyError as error:
        kind = cast("Any", model).config.model_type
        words = f"what {kind!r} keeps of a text is not known without weights ({error})"
        raise FamilyError(words) from error


def check_options(config: LlmConfig, kind: str) -> None:
    """Check that no option is set which needs a decoder of our own.

    Raises: LlmConfigError
    """
    for name in _OURS_ONLY:
        if getattr(config.model, name):
            words = f"not available for {kind!r}, a module of transformers"
            raise LlmConfigError(f"model.{name}: {words}")
