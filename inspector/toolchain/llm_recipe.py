"""The recipe of a language model: the groups of its configuration as fields."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from inspector.recipes.compile_job import (
    EMBEDDING_WORDS,
    MODULE_WORDS,
    WEIGHT_WORDS,
    CompileJob,
    Quantization,
)
from inspector.recipes.recipe import RecipeError
from inspector.recipes.source import Source

if TYPE_CHECKING:
    from compiler.llm.config import LlmConfig
    from compiler.llm.quantization import QuantizationConfig

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
    from compiler.llm.quantization import linear_word, table_word

    mode, table = linear_word(given), table_word(given)
    if mode and mode not in WEIGHT_WORDS:
        _refuse_group("group_size", mode, WEIGHT_WORDS)
    if table and table not in EMBEDDING_WORDS:
        _refuse_group("embedding_quantize", table, EMBEDDING_WORDS)
    for path, word in given.modules.items():
        if word not in MODULE_WORDS:
            _refuse_group(f"modules.{path}", word, (*WEIGHT_WORDS, *EMBEDDING_WORDS))
    modules = tuple(f"{path}={word}" for path, word in given.modules.items())
    if given.pt2e_quantize is not None:
        mode = _DYNAMIC
    return Quantization(mode or ("none" if modules else ""), modules=modules, embedding=table)


def _refuse_group(key: str, word: str, known: tuple[str, ...]) -> NoReturn:
    kind, _, group = word.partition(":group=")
    start = f"{kind}:group="
    groups = ", ".join(one.removeprefix(start) for one in known if one.startswith(start))
    raise RecipeError(f"quantization.{key}: expected one of {groups}, found {group}")
