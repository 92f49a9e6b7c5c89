"""Chat templates: messages to the text that a model was trained on."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Generator, Mapping, Sequence, Sized
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from jinja2 import TemplateError
from jinja2.compiler import CodeGenerator
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment
from typing_extensions import override

from runtime.llm.tokenizers import TokenizerError, json_beside

_MOST_LETTERS = 16_000_000  # of a text; templates come with a model and may repeat without end
_TOO_LONG = f"the chat template makes more than {_MOST_LETTERS:,} letters"
_MOST_SECONDS = 5.0  # templates of models take milliseconds
_MOST_WORDS = 300  # letters of an error that a template makes


class ChatError(ValueError):
    """A template that is missing or fails."""


class _Generation(Extension):
    """The tag around the answers of a model in training; it changes nothing."""

    tags = {"generation"}  # noqa: RUF012 - as the library declares it

    @override
    def parse(self, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Code(CodeGenerator):
    """Joins strings by the environment, which bounds them."""

    @override
    def visit_Concat(self, node: Any, frame: Any) -> None:
        self.write("environment.joined((")
        for one in node.nodes:
            self.visit(one, frame)
            self.write(", ")
        self.write("))")


class _Environment(ImmutableSandboxedEnvironment):
    """A sandbox in which no product and no sum is larger than a text may be."""

    intercepted_binops = frozenset({"+", "*", "**"})
    code_generator_class = _Code

    def joined(self, parts: Sequence[object]) -> str:
        """Return the text of values behind one another."""
        texts = [str(one) for one in parts]
        if sum(map(len, texts)) > _MOST_LETTERS:
            raise ChatError(_TOO_LONG)
        return "".join(texts)

    @override
    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        numbers = isinstance(left, int) and isinstance(right, int)
        if operator == "**" and numbers:
            size = left.bit_length() * right
        elif operator == "*" and not numbers:
            both: tuple[Any, Any] = (left, right) if isinstance(left, int) else (right, left)
            count, repeated = both
            sized = isinstance(count, int) and isinstance(repeated, Sized)
            size = len(repeated) * count if sized else 0
        elif isinstance(left, Sized) and isinstance(right, Sized):
            size = len(left) + len(right)
        else:
            size = 0
        if size > _MOST_LETTERS:
            raise ChatError(_TOO_LONG)
        return super().call_binop(context, operator, left, right)


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


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _json(
    value: Any,  # noqa: ANN401 - of a template
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return JSON without the escapes for HTML that a template engine would add."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


@contextmanager
def _time_limit() -> Generator[None]:
    """End what runs in this thread after some seconds, by the lines of its code.

    Loops without output ask for nothing else that could end them.
    """
    end = time.monotonic() + _MOST_SECONDS

    def check(*_step: object) -> Any:  # noqa: ANN401 - as Python declares it
        if time.monotonic() > end:
            words = f"the chat template takes more than {_MOST_SECONDS:g} seconds"
            raise ChatError(words)
        return check

    before = sys.gettrace()
    sys.settrace(check)
    try:
        yield
    finally:
        sys.settrace(before)


def chat_prompt(
    template: str, tokens: Mapping[str, Any], messages: Sequence[Mapping[str, str]]
) -> str:
    """Return the text of messages, up to where the answer begins.

    Raises: ChatError
    """

    def refuse(sentence: str) -> None:
        raise ChatError(sentence)

    environment: Any = _Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", _Generation],
    )
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = _now
    environment.filters["tojson"] = _json
    given = {"messages": list(messages), "tools": None, "documents": None}
    pieces: list[str] = []
    letters = 0
    try:
        compiled: Any = environment.from_string(template)
        with _time_limit():
            for piece in compiled.generate(**{**tokens, **given}, add_generation_prompt=True):
                pieces.append(piece)
                letters += len(piece)
                if letters > _MOST_LETTERS:
                    refuse(_TOO_LONG)
    except ChatError:
        raise
    except TemplateError as error:
        raise ChatError(f"the chat template fails: {_short(error)}") from error
    except Exception as error:  # of any expression in it
        words = f"{type(error).__name__}: {_short(error)}" if str(error) else type(error).__name__
        raise ChatError(f"the chat template fails: {words}") from error
    return "".join(pieces)


def _short(error: Exception) -> str:
    return str(error)[:_MOST_WORDS]
