"""The recipe of a language model: the groups of its configuration as fields."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.recipes.compile_job import (
    EMBEDDING_WORDS,
    OVERRIDES,
    WEIGHT_WORDS,
    CompileJob,
    Quantization,
)
from inspector.recipes.recipe import RecipeError
from inspector.recipes.source import Source

if TYPE_CHECKING:
    from compiler.llm.config import LlmConfig, QuantizationConfig

_DYNAMIC = "dynamic"


def read_llm_config(source: Source) -> LlmConfig:
    """Return the configuration of a source, with its settings.

    Raises: RecipeError with the path of an invalid key, OSError
    """
    from compiler.llm.config import LlmConfigError, read_config, split_settings

    try:
        return read_config(source.path, split_settings(source.function))
    except LlmConfigError as error:
        raise RecipeError(str(error)) from error


def llm_recipe(source: Source, config: LlmConfig) -> CompileJob:
    """Return the compile of a configuration.

    Raises: RecipeError for a quantization that is not available
    """
    from compiler.llm.recipe_words import in_files, partitioners_of, shares_state

    settings = ["do_quant_fusion_and_const_prop=true"]
    if config.model.use_kv_cache:
        settings += ["emit_mutable_buffer_names=true", "store_zero_state=false"]
    settings += ["share_mutable_buffers=true"] if shares_state(config) else []
    return CompileJob(
        Source(str(Path(source.path).absolute()), source.function),
        partitioners=partitioners_of(config),
        quantising=_quantization(config.quantization),
        external_constants=in_files(config),
        backend_config=tuple(settings),
    )


def _quantization(given: QuantizationConfig) -> Quantization:
    from compiler.llm.recipe_words import linear_word, table_word

    mode, table = linear_word(given), table_word(given)
    if given.pt2e_quantize is not None:
        if mode or not given.pt2e_quantize.endswith(f"_{_DYNAMIC}"):
            known = "a backend's dynamic quantization, without qmode"
            words = f"{given.pt2e_quantize} is not available; expected {known}"
            raise RecipeError(f"quantization.pt2e_quantize: {words}")
        mode = _DYNAMIC
    elif mode and mode not in WEIGHT_WORDS and given.qmode in WEIGHT_WORDS:
        start = f"{given.qmode}:group="
        groups = ", ".join(one.removeprefix(start) for one in WEIGHT_WORDS if one.startswith(start))
        words = f"expected one of {groups}, found {given.group_size}"
        raise RecipeError(f"quantization.group_size: {words}")
    elif mode and mode not in WEIGHT_WORDS:
        words = f"unknown {mode!r}; available: {', '.join(WEIGHT_WORDS)}"
        raise RecipeError(f"quantization.qmode: {words}")
    if table and table not in EMBEDDING_WORDS:
        words = f"expected BITS,GROUP, such as 4,32, found {given.embedding_quantize!r}"
        raise RecipeError(f"quantization.embedding_quantize: {words}")
    for path, word in given.modules.items():
        if word not in OVERRIDES:
            words = f"unknown {word!r}; available: {', '.join(OVERRIDES)}"
            raise RecipeError(f"quantization.modules.{path}: {words}")
    modules = tuple(f"{path}={word}" for path, word in given.modules.items())
    return Quantization(mode or ("none" if modules else ""), modules=modules, embedding=table)
