"""A request to generate text with the program of a language model."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.jobs.executing import ENGINES


@dataclass(frozen=True, slots=True)
class GenerateJob:
    """A request to generate.

    Attributes:
        program: a ``.pte``
        tokenizer: a file, a folder, or ``bytes``; empty where the program has a token per byte
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
        data_files: ``.ptd`` files
        threads: of torch
        engine: for delegates whose backend has several engines
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
    data_files: tuple[str, ...] = ()
    threads: int = 1
    engine: str = ENGINES[0]
    libraries: tuple[str, ...] = ()


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
