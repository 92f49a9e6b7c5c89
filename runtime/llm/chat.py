"""Chat templates: messages to the text that a model was trained on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import psutil

from runtime.llm import template_child
from runtime.llm.tokenizers import TokenizerError, json_beside

_MOST_SECONDS = 5.0  # templates of models take milliseconds
_MOST_BYTES = 200_000_000  # of the process in which one is rendered
_LOOK = 0.02  # seconds between looks at its memory
_TOO_LARGE = f"the chat template needs more than {_MOST_BYTES // 1_000_000} MB of memory"
_CHILD = Path(template_child.__file__)


class ChatError(ValueError):
    """A template that is missing or fails."""


def chat_template(folder: Path) -> tuple[str, Mapping[str, Any]]:
    """Return the template beside a tokenizer, and the tokens it may name.

    Raises: ChatError if there is none
    """
    config = _beside(folder, "tokenizer_config.json")
    own = folder / "chat_template.jinja"
    template: Any = config.get("chat_template")
    if own.is_file():
        try:
            template = own.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ChatError(f"{own}: not a text: {error}") from error
    elif template is None:  # of processors
        template = _beside(folder, "chat_template.json").get("chat_template")
    if isinstance(template, list):
        listed = cast("list[Any]", template)
        entries = [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]
        template = {str(one.get("name")): one.get("template") for one in entries}
    if isinstance(template, dict):
        template = cast("dict[Any, Any]", template).get("default")
    if not isinstance(template, str):
        raise ChatError(f"{folder}: neither chat_template.jinja nor one in tokenizer_config.json")
    names = ("bos_token", "eos_token", "pad_token", "unk_token")
    named = [*names, *(one for one in config if one.endswith("_token") and one not in names)]
    return template, {name: _text(config.get(name)) for name in named}


def _beside(folder: Path, name: str) -> dict[str, Any]:
    """Return the content of a file beside a tokenizer, nothing where it is missing.

    Raises: ChatError
    """
    try:
        return json_beside(folder / name)
    except TokenizerError as error:
        raise ChatError(str(error)) from error


def _text(token: Any) -> str:  # noqa: ANN401 - JSON
    found: Any = cast("dict[str, Any]", token).get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) else ""


def chat_prompt(
    template: str, tokens: Mapping[str, Any], messages: Sequence[Mapping[str, str]]
) -> str:
    """Return the text of messages, up to where the answer begins.

    Raises: ChatError
    """
    given = {"messages": list(messages), "tools": None, "documents": None}
    request = {
        "template": template,
        "given": {**tokens, **given, "add_generation_prompt": True},
        "memory": _MOST_BYTES,
        "path": sys.path,
    }
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    with child:
        try:
            answer = _awaited(child, json.dumps(request).encode())
        finally:
            child.kill()
    text = answer.decode("utf-8", "surrogatepass")
    if child.returncode == 0:
        return text
    if child.returncode != template_child.SENTENCE:
        words = f"the process that renders the chat template ended with code {child.returncode}"
        raise ChatError(words)
    raise ChatError(text or _TOO_LARGE)


def _awaited(child: subprocess.Popen[bytes], request: bytes) -> bytes:
    """Return what the child writes.

    Raises: ChatError when it takes too long, or too much memory
    """
    end = time.monotonic() + _MOST_SECONDS
    given: bytes | None = request
    while True:
        try:
            return child.communicate(given, timeout=_LOOK)[0]
        except subprocess.TimeoutExpired:
            given = None
        if time.monotonic() > end:
            words = f"the chat template takes more than {_MOST_SECONDS:g} seconds"
            raise ChatError(words)
        with suppress(psutil.Error):
            if psutil.Process(child.pid).memory_info().rss > _MOST_BYTES:
                raise ChatError(_TOO_LARGE)
