"""Imports of libraries that log or warn at import, without that output."""

from __future__ import annotations

import importlib
import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

_TALK = ("torchao", "torch.utils._pytree")  # loggers


def import_quietly(name: str) -> Any:  # noqa: ANN401 - a module
    """Import a module and suppress its warnings and log messages.

    Raises: ImportError
    """
    with warnings.catch_warnings(), _errors_only():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


@contextmanager
def _errors_only() -> Generator[None]:
    loggers = [logging.getLogger(name) for name in _TALK]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
