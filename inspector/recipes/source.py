"""What is compiled: a function in a file, a .pt2 file, an ETRecord, a language model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from inspector.recipes.options import SOURCE, FieldNames, option

LLM_SUFFIXES = (".yaml", ".yml")


class SourceKind(str, Enum):
    """Kinds of sources of a program."""

    PYTHON = "python"  # a function in a file, which runs the user's code
    EXPORTED = "exported"  # a .pt2 file
    RECORD = "record"  # an ETRecord
    LLM = "language model"  # a .yaml file with the groups of LlmConfig


class SourceError(ValueError):
    """A source without anything to compile; the message has the expected form."""


@dataclass(frozen=True, slots=True)
class Source:
    """A program to compile."""

    path: str = option(
        ...,
        "a Python file, a .pt2 file, an ETRecord, or the .yaml file of a language model",
        metavar="FILE",
        label="file",
        empty="model.py, .pt2, .etrecord or llm.yaml",
        group=SOURCE,
        names=FieldNames.FILE,
    )
    function: str = option(
        "",
        "of a Python file: returns the module and its example inputs; of a .yaml file: settings as"
        " model.use_kv_cache=true, separated by commas; empty for the other kinds",
        empty="of a Python file",
        group=SOURCE,
        names=FieldNames.FUNCTION,
    )

    @property
    def kind(self) -> SourceKind:
        """Return the kind of source, by the name of the file."""
        suffix = Path(self.path).suffix
        if suffix == ".py":
            return SourceKind.PYTHON
        if suffix in LLM_SUFFIXES:
            return SourceKind.LLM
        return SourceKind.EXPORTED if suffix == ".pt2" else SourceKind.RECORD

    @property
    def takes_function(self) -> bool:
        """Return whether the function has a meaning: a function, or settings."""
        return self.kind in (SourceKind.PYTHON, SourceKind.LLM)

    def __str__(self) -> str:
        return f"{self.path}:{self.function}" if self.function else self.path


def parse_source(text: str) -> Source:
    """Return the source for user input.

    Args:
        text: ``file.py:function``, a ``.pt2`` file, an ETRecord, or ``file.yaml[:settings]``

    Raises: SourceError if a Python file comes without a function
    """
    path, colon, function = text.rpartition(":")
    if colon and path.endswith(".py"):
        if not function.isidentifier():
            raise SourceError(f"{text} names no function; expected {path}:function")
        return Source(path, function)
    if colon and path.endswith(LLM_SUFFIXES):
        return Source(path, function)
    if text.endswith(".py"):
        raise SourceError(f"{text} names no function; expected {text}:function")
    return Source(text)
