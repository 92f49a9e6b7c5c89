"""Generation of text: a prompt goes through the program, then one token after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch

from runtime.api import Runtime
from runtime.errors import ErrorCode, ExecutionError, invalid_argument
from runtime.execution.method import Method
from runtime.execution.program import Program
from runtime.llm.generation import (
    DECODE,
    PREFILL,
    CallTime,
    GenerationConfig,
    GenerationStats,
    Sampler,
)
from runtime.llm.stops import StopStrings
from runtime.llm.text_stream import TextStream
from runtime.llm.tokenizers import Tokenizer, load_tokenizer

_FORWARD = "forward"
_OF_TOKENS = (_FORWARD, PREFILL, DECODE)
_NUMBERS = {
    "get_bos_id",
    "get_eos_ids",
    "get_max_context_len",
    "get_max_seq_len",
    "get_vocab_size",
}


class TextRunner:
    """Generates text with a program of a language model.

    A program has ``forward``, or ``prefill`` and ``decode`` over one cache. With a cache a method
    takes tokens and the position of the first one, without one it takes all tokens so far.

    Args:
        program: a ``.pte``
        tokenizer: of the model: a file, a folder, or ``bytes``
        data_files: ``.ptd`` files
        engine: of delegates that have several
    """

    def __init__(
        self,
        program: str | Path,
        tokenizer: str | Path | Tokenizer,
        data_files: Sequence[str | Path] = (),
        engine: str = "auto",
    ) -> None:
        self._path, self._data, self._engine = (
            str(program),
            [str(one) for one in data_files],
            engine,
        )
        named = isinstance(tokenizer, str | Path)
        self.tokenizer: Tokenizer = load_tokenizer(tokenizer) if named else tokenizer
        self._program: Program | None = None
        self._methods: dict[str, Method] = {}
        self._facts: dict[str, Any] = {}
        self._stopped = False
        self._load_ms = 0.0
        self.position = 0
        self._history: list[int] = []
        self._pending: list[int] = []  # the last token of an answer, which no call has had yet

    @property
    def program(self) -> str:
        """Return the path of the program."""
        return self._path

    @property
    def facts(self) -> dict[str, Any]:
        """Return the values of the program's constant methods, once it is loaded."""
        return dict(self._facts)

    @property
    def context(self) -> int:
        """Return the number of positions that the model can see."""
        facts = self._facts
        told = int(facts.get("get_max_context_len") or facts.get("get_max_seq_len") or 128)
        return min([told, *self._whole_texts()])

    @property
    def rolls(self) -> bool:
        """Return whether a text may be longer than the context, since the cache wraps."""
        return bool(self._facts.get("use_rolling_kv_cache"))

    def is_loaded(self) -> bool:
        """Return whether the program is loaded."""
        return self._program is not None

    def load(self) -> None:
        """Load the program and its methods.

        Raises: ExecutionError for another kind of program
        """
        if self._program is not None:
            return
        start = time.perf_counter()
        program = Runtime.get().load_program(self._path, data_path=self._data or None)
        names = set(program.method_names)
        used = self._used(names)
        self._facts = {name: _constant(program, name) for name in sorted(names) if _asked(name)}
        _check_numbers(self._facts)
        for name in used:
            self._methods[name] = program.load_method(name, engine=self._engine)
        self._program = program
        self._load_ms = (time.perf_counter() - start) * 1e3

    def _used(self, names: set[str]) -> list[str]:
        """Return the methods of a program that the runner calls.

        Raises: ExecutionError for another kind of program
        """
        used = [name for name in _OF_TOKENS if name in names]
        if _FORWARD not in used and DECODE not in used:
            there = ", ".join(sorted(names))
            raise ExecutionError(
                ErrorCode.InvalidArgument,
                f"{self._path} is not a language model: it has neither forward nor decode, but"
                f" {there}",
            )
        return used

    def stop(self) -> None:
        """End the running generation behind its current token; called on any thread."""
        self._stopped = True

    def reset(self) -> None:
        """Forget the conversation: the next prompt begins at position 0."""
        self._go_back(0)

    def _go_back(self, position: int) -> None:
        self.position, self._history = position, self._history[:position]
        self._pending = []

    def warmup(self, prompt: str, tokens: int = 2) -> None:
        """Generate a few tokens and forget them.

        Raises: ExecutionError
        """
        self.generate(prompt, GenerationConfig(max_new_tokens=tokens))
        self.reset()

    def generate(
        self,
        prompt: str,
        config: GenerationConfig | None = None,
        on_text: Callable[[str], object] | None = None,
        on_call: Callable[[CallTime], object] | None = None,
    ) -> GenerationStats:
        """Generate behind the conversation so far and a prompt.

        Args:
            prompt: text
            config: by default the likeliest tokens until the context is full
            on_text: called with each piece of text
            on_call: called behind each call of the program

        Returns: tokens and times

        Raises: ExecutionError for a prompt that is empty or does not fit, an empty stop text, and
            for ``num_bos`` where no token begins a text
        """
        config = config or GenerationConfig()
        self.load()
        if "" in config.stop:
            raise invalid_argument("stop: expected a token's name or a text, found an empty one")
        for one in config.stop:
            _check_text("stop", one)
        tokens = self._begin_tokens(config.num_bos)
        tokens += self.encoded(prompt, special=config.chat)
        if config.echo and on_text is not None:
            on_text(prompt)
        stream, stops = TextStream(self.tokenizer), StopStrings(config.stop)

        def show(piece: str) -> None:
            if on_text is not None and piece:
                on_text(piece)

        def emit(token: int) -> None:
            show(stops.add(stream.add(token)))
            if stops.found:
                self.stop()

        stats = self.generate_tokens(tokens, config, emit, on_call)
        show(stops.add(stream.rest()))
        show(stops.rest())
        if stops.found:
            stats.ended = "stop text"
        return stats

    def generate_from_pos(
        self,
        prompt: str,
        start_pos: int,
        config: GenerationConfig | None = None,
        on_text: Callable[[str], object] | None = None,
        on_call: Callable[[CallTime], object] | None = None,
    ) -> GenerationStats:
        """Generate behind the first positions of the conversation; see ``generate``.

        Raises: ExecutionError for a position that the conversation has not, or whose cache wrapped
        """
        self.load()
        if not 0 <= start_pos <= self.position or (self.rolls and start_pos < self.position):
            known = f"{self.position} tokens{', in a cache that wraps' if self.rolls else ''}"
            raise invalid_argument(f"position {start_pos}: the conversation has {known}")
        self._go_back(start_pos)
        return self.generate(prompt, config, on_text, on_call)

    def generate_tokens(
        self,
        tokens: Sequence[int],
        config: GenerationConfig,
        on_token: Callable[[int], object] | None = None,
        on_call: Callable[[CallTime], object] | None = None,
    ) -> GenerationStats:
        """Generate behind tokens; see ``generate``."""
        self.load()
        self._stopped = False
        given = [*self._pending, *tokens]
        room = self._room(len(given))
        if not tokens:
            words = "a text, or a token that begins one (num_bos)"
            raise invalid_argument(f"the prompt has no tokens: expected {words}")
        if room < 0:
            words = f"{len(given)} tokens at {self.position}"
            raise invalid_argument(f"the prompt has {words}, the context {self.context} positions")
        self._check_known(tokens)
        stats = GenerationStats(self._load_ms, len(tokens))
        sampler, start = Sampler(config), time.perf_counter()
        logits = self._forward(given, PREFILL, stats, on_call)
        self._pending = []
        stats.prefill_ms = sum(one.ms for one in stats.calls)
        # The last token needs no place of its own: nothing is computed from it.
        most = room + 1
        if config.max_new_tokens >= 0:
            most = config.max_new_tokens if self.rolls else min(config.max_new_tokens, most)
        ends = self._ends(config)
        stats.ended = "length"
        while len(stats.tokens) < most:
            token = sampler.choose(logits)
            if not stats.tokens:
                stats.first_token_ms = (time.perf_counter() - start) * 1e3
            stats.tokens.append(token)
            self._pending = [token]
            if token in ends:
                stats.ended = "end of text"
                break
            if on_token is not None:
                on_token(token)
            if self._stopped:
                stats.ended = "stopped"
                break
            if len(stats.tokens) < most:
                logits = self._forward([token], DECODE, stats, on_call)
        return stats

    def encoded(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of a text; see ``Tokenizer.encode``.

        Raises: ExecutionError for bytes of a command line that were no text
        """
        _check_text("the prompt", text)
        return self.tokenizer.encode(text, special=special)

    def _check_known(self, tokens: Sequence[int]) -> None:
        """Refuse tokens that the program has no row for: the tokenizer is of another model."""
        size = self._facts.get("get_vocab_size")
        other = next((one for one in tokens if size is not None and not 0 <= one < size), None)
        if other is not None:
            words = f"the tokenizer gives token {other}, the program has {size} tokens"
            raise invalid_argument(f"{words}: is it the tokenizer of another model?")

    def _room(self, count: int) -> int:
        """Return the positions behind a prompt; without an end, one context of them."""
        return self.context if self.rolls else self.context - self.position - count

    def end_tokens(self) -> tuple[int, ...]:
        """Return the tokens that end a text: those of the program, else of the tokenizer."""
        found: Any = self._facts.get("get_eos_ids")
        return self.tokenizer.eos if found is None else tuple(map(int, _listed(found)))

    def _ends(self, config: GenerationConfig) -> set[int]:
        named = {token for one in config.stop if (token := self.tokenizer.token(one)) is not None}
        if config.ignore_eos:
            return named
        own = self.tokenizer.eos if config.chat else ()
        return {*named, *self.end_tokens(), *own}

    def begin_token(self) -> int | None:
        """Return the token that begins a text: that of the program, else of the tokenizer."""
        found: Any = self._facts.get("get_bos_id")
        return self.tokenizer.bos if found is None else int(found)

    def _begin_tokens(self, count: int) -> list[int]:
        """Return tokens that begin a text, as often as requested.

        Raises: ExecutionError where there is none
        """
        begin = self.begin_token() if count else None
        if count and begin is None:
            words = "neither the program (get_bos_id) nor its tokenizer names one"
            raise invalid_argument(f"num_bos {count}: which token begins a text? {words}")
        return [] if begin is None else [begin] * count

    def logits_of(self, tokens: Sequence[int]) -> torch.Tensor:
        """Return the logits behind tokens, which are appended to the conversation.

        Shapes: result: [vocabulary]

        Raises: ExecutionError
        """
        self.load()
        return self._forward(list(tokens), PREFILL, GenerationStats(), None)

    def _forward(
        self,
        tokens: list[int],
        kind: str,
        stats: GenerationStats,
        on_call: Callable[[CallTime], object] | None,
    ) -> torch.Tensor:
        """Run tokens in calls as long as the methods allow; return the last logits."""
        logits: torch.Tensor | None = None
        while tokens:
            name, count, inputs = self.next_inputs(tokens)
            now, tokens = tokens[:count], tokens[count:]
            start = time.perf_counter()
            (found, *_) = self._methods[name].execute(inputs)
            call = CallTime(kind, self.position, count, (time.perf_counter() - start) * 1e3)
            stats.calls.append(call)
            if on_call is not None:
                on_call(call)
            self._history += now
            self.position += count
            rows = found.reshape(-1, found.shape[-1])
            given = count if self._inputs_of(name) > 1 else self.position
            padded = inputs[0].shape[1] - given  # rows behind those of the tokens
            logits = rows[-1 - padded].clone()
        assert logits is not None
        return logits

    def next_inputs(self, tokens: Sequence[int]) -> tuple[str, int, list[torch.Tensor]]:
        """Return the method of the next call, how many of some tokens it takes, and its inputs.

        Raises: ExecutionError for fewer tokens than a method takes in each call
        """
        name, count = self._next_call(len(tokens))
        now = list(tokens[:count])
        if self._inputs_of(name) > 1:
            if self._is_static(name) and count < self._longest(name):
                raise invalid_argument(
                    f"{name} takes exactly {self._longest(name)} tokens in each call, found "
                    f"{count}: export a method for one token beside it (decode, export_seq_len=1)"
                )
            return name, count, [torch.tensor([now]), torch.tensor([self.position])]
        return name, count, [torch.tensor([self._filled(name, [*self._history, *now])])]

    def _filled(self, name: str, tokens: list[int]) -> list[int]:
        """Return a text as long as a method without a cache takes it; no token reads later ones.

        Raises: ExecutionError where the logits of the last position are all that it gives
        """
        longest = self._longest(name)
        if len(tokens) == longest or not self._is_static(name):
            return tokens
        if longest not in self._methods[name].metadata.output_tensor_meta(0).sizes()[:-1]:
            raise invalid_argument(
                f"{name} takes exactly {longest} tokens in each call and gives the logits of the "
                f"last one only, found {len(tokens)}: export it with "
                "debug.generate_full_logits=true, or with model.use_kv_cache=true"
            )
        return tokens + [0] * (longest - len(tokens))

    def _next_call(self, left: int) -> tuple[str, int]:
        """Return the method for the next tokens, and how many it takes."""
        if _FORWARD in self._methods:
            return _FORWARD, min(left, self._longest(_FORWARD))
        longest = self._longest(PREFILL) if PREFILL in self._methods else 0
        if longest and left > 1 and (left >= longest or not self._is_static(PREFILL)):
            return PREFILL, min(left, longest)
        return DECODE, 1

    def _is_static(self, name: str) -> bool:
        return self._methods[name].metadata.input_tensor_meta(0).is_static()

    def _whole_texts(self) -> list[int]:
        """Return the capacity of each method without a cache, which takes all tokens each call."""
        texts = (name for name in _OF_TOKENS if name in self._methods)
        whole = (name for name in texts if self._inputs_of(name) < 2)
        return [self._longest(name) for name in whole]

    def _inputs_of(self, name: str) -> int:
        return self._methods[name].metadata.num_inputs()

    def _longest(self, name: str) -> int:
        """Return how many tokens a method takes at most."""
        return int(self._methods[name].metadata.input_tensor_meta(0).sizes()[1])


def _listed(found: Any) -> list[Any]:  # noqa: ANN401 - a number or several
    return list(cast("Any", found)) if isinstance(found, list | tuple) else [found]


def _check_numbers(facts: Mapping[str, Any]) -> None:
    """Refuse a program with a string for a token or a length, as its metadata may have it."""
    for name in _NUMBERS & facts.keys():
        for one in _listed(facts[name]):
            try:
                int(one)
            except (TypeError, ValueError) as error:
                raise invalid_argument(f"{name}: expected a number, found {one!r:.60}") from error


def _asked(name: str) -> bool:
    return name.startswith(("get_", "use_", "enable_"))


def _check_text(what: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        words = f"at letter {error.start} it has bytes that are not UTF-8"
        raise invalid_argument(f"{what} is not a text: {words}") from error


def _constant(program: Program, name: str) -> Any:  # noqa: ANN401 - a number or a list
    found = list(program.load_method(name).execute([]))
    return found[0] if len(found) == 1 else found
