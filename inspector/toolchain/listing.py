"""The partitioners that a toolchain has by name."""

from __future__ import annotations

from typing import Any

from inspector.recipes.compile_job import EXECUTORCH
from inspector.toolchain.child import ReportedError, ToolchainError, ask, ignore_message
from inspector.toolchain.interpreter import interpreter


class ListingError(Exception):
    """A failed listing; one sentence.

    Attributes:
        usage: whether the user named a wrong interpreter
    """

    def __init__(self, sentence: str, *, usage: bool) -> None:
        self.usage = usage
        super().__init__(sentence)


def stock_partitioners(python: str) -> dict[str, Any]:
    """Return the partitioners of the ``executorch`` package of an interpreter.

    Args:
        python: its path; empty for the one we run in

    Raises: ListingError
    """
    try:
        answer = ask(interpreter(python), {"do": "list"}, ignore_message)
    except ReportedError as error:
        raise ListingError(str(error), usage=False) from error
    except ToolchainError as error:
        raise ListingError(str(error), usage=error.blame == "usage") from error
    version = answer.versions.get(EXECUTORCH, "unknown")
    python = answer.versions.get("executable", python)
    tool = {"name": EXECUTORCH, "version": version, "python": python}
    return {"toolchain": tool, **answer.result}
