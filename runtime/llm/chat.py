"""Chat templates: messages to the text that a model was trained on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment


class ChatError(ValueError):
    """A template that is missing or fails."""


def chat_template(folder: Path) -> tuple[str, Mapping[str, Any]]:
    """Return the template beside a tokenizer, and the tokens it may name.

    Raises: ChatError if there is none
    """
    config: Any = {}
    path = folder / "tokenizer_config.json"
    if path.is_file():
        try:
            config = json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise ChatError(f"{path}: not JSON: {error}") from error
    own = folder / "chat_template.jinja"
    template: Any = own.read_text("utf-8") if own.is_file() else config.get("chat_template")
    if isinstance(template, list):
        entries = cast("list[Any]", template)
        template = {one.get("name"): one.get("template") for one in entries}
    if isinstance(template, dict):
        template = cast("dict[Any, Any]", template).get("default")
    if not isinstance(template, str):
        raise ChatError(f"{folder}: neither chat_template.jinja nor one in tokenizer_config.json")
    names = ("bos_token", "eos_token", "pad_token", "unk_token")
    tokens = {name: _text(config.get(name)) for name in names}
    return template, tokens


def _text(token: Any) -> str:  # noqa: ANN401 - JSON
    found: Any = cast("dict[str, Any]", token).get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) else ""


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _json(value: Any, indent: int | None = None) -> str:  # noqa: ANN401 - of a template
    """Return JSON without the escapes for HTML that a template engine would add."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def chat_prompt(
    template: str, tokens: Mapping[str, Any], messages: Sequence[Mapping[str, str]]
) -> str:
    """Return the text of messages, up to where the answer begins.

    Raises: ChatError
    """

    def refuse(sentence: str) -> None:
        raise ChatError(sentence)

    environment: Any = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = _now
    environment.filters["tojson"] = _json
    given = {"messages": list(messages), "tools": None, "documents": None}
    try:
        compiled: Any = environment.from_string(template)
        return str(compiled.render(**given, add_generation_prompt=True, **tokens))
    except TemplateError as error:
        raise ChatError(f"the chat template fails: {error}") from error
