"""Requests to generate text with the program of a language model, and their progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import override

from inspector.jobs.executing import ENGINES
from inspector.jobs.messages import Generated, Message
from inspector.jobs.supervisor import RunSupervisor, Setup, Supervisor


@dataclass(frozen=True, slots=True)
class GenerateJob:
    """A request to generate.

    Attributes:
        program: a ``.pte``
        tokenizer: a file, a folder, or ``bytes``; empty for that of the recipe beside the
            program, else a token for each byte
        prompt: text
        chat: whether the prompt is a message, put into the chat template beside the tokenizer
        system: a message before it, with ``chat``
        max_new_tokens: -1 until the context is full
        temperature: 0 takes the likeliest token
        top_p: only the likeliest tokens that have this probability together
        seed: of the draws
        num_bos: tokens that begin a text, put before the prompt
        ignore_eos: whether generation goes on behind the end of the text
        warmup: whether a few tokens are generated and forgotten before
        stop: names of tokens that end the text too, or strings that do
        data_files: ``.ptd`` files
        threads: of torch, 0 for its default
        engine: for delegates whose backend has several engines
        libraries: files that register operators
        parts: of a prompt with images and audio, before its text: ``text``, ``image`` or ``audio``
            with the text, or a file of one tensor
    """

    program: str
    tokenizer: str = ""
    prompt: str = ""
    chat: bool = False
    system: str = ""
    max_new_tokens: int = -1
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    num_bos: int = 0
    ignore_eos: bool = False
    warmup: bool = False
    stop: tuple[str, ...] = ()
    data_files: tuple[str, ...] = ()
    threads: int = 1
    engine: str = ENGINES[0]
    libraries: tuple[str, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class LlmGapJob:
    """A request to compare a language model with its float module, token by token.

    Both read the same tokens, whatever they would choose themselves.

    Attributes:
        program: a ``.pte``
        config: the ``.yaml`` file it was compiled from
        settings: changes of the configuration, separated by commas
        tokenizer: as of ``GenerateJob``
        text: what is read
        tokens: of the text, at most
        data_files: ``.ptd`` files
        threads: of torch
        engine: for delegates whose backend has several engines
        inputs: folder for the inputs of the first calls, one file a call; empty for none
        calls: whose inputs are written, at most
        libraries: files that register operators
        rows: file of the tokens that were read, which a further call goes on with; empty for none
    """

    program: str
    config: str
    settings: str = ""
    tokenizer: str = ""
    text: str = ""
    tokens: int = 64
    data_files: tuple[str, ...] = ()
    threads: int = 1
    engine: str = ENGINES[0]
    inputs: str = ""
    calls: int = 0
    libraries: tuple[str, ...] = ()
    rows: str = ""


@dataclass(frozen=True, slots=True)
class GenerationState:
    """How far a generation is.

    Attributes:
        text: so far
        calls: of the program
        ending: whether it ends behind its current token
    """

    text: str = ""
    calls: int = 0
    ending: bool = False


class GenerateSupervisor(Supervisor[GenerationState]):
    """Keeps the text of a generation; ends it early as a run."""

    def __init__(self, job: Any, setup: Setup) -> None:  # noqa: ANN401
        super().__init__(job, setup)
        self.state = GenerationState()
        self._run = RunSupervisor(job, setup)

    @override
    def request(self) -> tuple[Any, Mapping[str, Any]]:
        return self._run.request()

    @override
    def note(self, message: Message) -> Message:
        if isinstance(message, Generated):
            text = self.state.text + message.text
            self.state = replace(self.state, text=text, calls=message.calls)
        return self._run.note(message)

    @override
    def may_send(self, command: Mapping[str, Any]) -> bool:
        accepted = self._run.may_send(command)
        self.state = replace(self.state, ending=self._run.state)
        return accepted
