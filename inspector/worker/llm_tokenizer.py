"""The tokenizer of a language model, as its configuration names it."""

from __future__ import annotations

from pathlib import Path

from inspector.recipes.llm_source import llm_source
from inspector.worker.exporter import AnswerError
from runtime.llm.tokenizers import file_in
from schema.recipe.tokenizers import BYTE_TOKENIZER


def recipe_tokenizer(program: str) -> str:
    """Return the tokenizer of the recipe beside a program; empty if unknown.

    Raises: AnswerError for a configuration that cannot be read, or names a file that is gone
    """
    source = llm_source(Path(program).parent)
    if source is None:
        return ""
    from compiler.llm.config import LlmConfigError, read_config, split_settings

    try:
        base = read_config(source.path, split_settings(source.function)).base
    except (LlmConfigError, OSError) as error:
        raise AnswerError(str(error)) from error
    if base.tokenizer_path:
        found = _beside(base.tokenizer_path, source.path)
        if str(found) != BYTE_TOKENIZER and not found.exists():
            words = "name its tokenizer: base.tokenizer_path of its configuration is"
            raise AnswerError(f"{program}: {words} {found}, which is not there")
        return str(found)
    if not base.checkpoint:
        return ""
    folder = _beside(base.checkpoint, source.path)
    return "" if file_in(folder) is None else str(folder)


def _beside(path: str, config: str) -> Path:
    """Return a path of a configuration, which may be relative to its file."""
    beside = Path(config).parent / path
    return beside if beside.exists() and not Path(path).exists() else Path(path)
