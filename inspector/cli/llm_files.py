"""The files that actions of llm name: configurations with settings, exports."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.answer import UNREADABLE, USAGE, CommandError
from inspector.cli.job_runs import check_there
from inspector.recipes.compile_job import PROGRAM
from inspector.recipes.llm_source import llm_recipe_in
from inspector.recipes.recipe import RecipeError
from inspector.recipes.source import LLM_SUFFIXES, Source
from inspector.toolchain.llm_recipe import read_llm_config
from schema.recipe.tokenizers import BYTE_TOKENIZER

if TYPE_CHECKING:
    from compiler.llm.config import LlmConfig

ASKED = ("get_", "use_", "enable_")  # begins of methods that a runner asks for a constant
_RECORD_SUFFIX = ".etrecord"
_PATHS = (
    "base.checkpoint",
    "base.params",
    "base.tokenizer_path",
    "base.lora_config.adapter_checkpoint",
    "base.lora_config.adapter_config",
    "export.output_dir",
)
_DEFAULT = "compiler/llm/configs/nano_gpt.yaml"


@dataclass(frozen=True, slots=True)
class LlmFiles:
    """An exported language model.

    Attributes:
        program: its ``.pte``
        data: its ``.ptd`` files
        source: the configuration that it was compiled from, None if unknown
        changed: whether that file has changed since
        record: its ETRecord, empty without one
        quantized: whether its recipe quantizes it
    """

    program: str
    data: tuple[str, ...]
    source: Source | None
    record: str = ""
    quantized: bool = False
    changed: bool = False


def config_source(options: Namespace) -> Source:
    """Return the configuration of the words, with its settings.

    Raises: CommandError, OSError
    """
    named = [word for word in options.words if "=" not in word]
    given = [word for word in options.words if "=" in word]
    settings = ",".join(given if named else map(_from_here, given))
    if len(named) > 1:
        raise CommandError(f"one configuration, not {' and '.join(named)}", USAGE)
    path = named[0] if named else str(Path(__file__).parents[2] / _DEFAULT)
    if named and not Path(path).exists():
        raise CommandError(f"{path}: no such file or folder", UNREADABLE)
    if not path.endswith(LLM_SUFFIXES):
        raise CommandError(f"{path} is not a {' or '.join(LLM_SUFFIXES)} file", USAGE)
    check_there(path)
    return Source(path, settings)


def _from_here(setting: str) -> str:
    """Return a setting of the default configuration; a relative path begins at this folder."""
    name, _, value = setting.partition("=")
    is_path = name in _PATHS and value and not value.startswith(("{", "/"))
    is_path = is_path and value != BYTE_TOKENIZER
    return f"{name}={Path(value).absolute()}" if is_path else setting


def read_source(source: Source) -> LlmConfig:
    """Return the configuration of a source.

    Raises: CommandError, OSError
    """
    try:
        return read_llm_config(source)
    except RecipeError as error:
        raise CommandError(str(error), USAGE) from error


def exported_files(options: Namespace) -> LlmFiles:
    """Return the files of the export that the words name.

    Raises: CommandError, OSError
    """
    if len(options.words) != 1:
        raise CommandError("which model? MODEL is the folder of an export, or a .pte", USAGE)
    path = Path(options.words[0])
    folder = path if path.is_dir() else path.parent
    program = folder / PROGRAM if path.is_dir() else path
    check_there(str(program))
    found = sorted(str(one) for one in folder.glob("*.ptd"))
    recipe, record = llm_recipe_in(folder), program.with_suffix(_RECORD_SUFFIX)
    return LlmFiles(
        str(program),
        tuple(options.ptd or found),
        None if recipe is None else recipe.job.source,
        str(record) if record.is_file() else "",
        recipe is not None and recipe.job.quantising.requested,
        recipe is not None and recipe.changed_source(),
    )
