"""How text is generated: the choice of tokens, and the times of a generation."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from runtime.errors import ErrorCode, ExecutionError, invalid_argument

PREFILL, DECODE = "prefill", "decode"  # kinds of calls
_NOT_FINITE = "the logits of the program are not finite: no token can be chosen from them"
_SEEDS = 1 << 63


@dataclass(frozen=True)
class GenerationConfig:
    """How text is generated; names as of ExecuTorch's runner.

    Attributes:
        max_new_tokens: -1 until the context is full
        temperature: 0 takes the likeliest token
        top_p: only the likeliest tokens that have this probability together
        seed: of the draws
        echo: whether the text begins with the prompt
        num_bos: tokens that begin a text, put before the prompt
        ignore_eos: whether generation goes on behind a token that ends a text
        stop: names of further tokens that end a text, or strings that do and are not part of it
        chat: whether the prompt comes from a chat template: special tokens are named in it, and the
            tokens that end a text are those of the program and of the tokenizer
    """

    max_new_tokens: int = -1
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    echo: bool = False
    num_bos: int = 0
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()
    chat: bool = False


@dataclass
class CallTime:
    """One call of the program.

    Attributes:
        kind: ``prefill`` or ``decode``
        position: of its first token
        tokens: number of its input tokens
        ms: its time
    """

    kind: str
    position: int
    tokens: int
    ms: float


@dataclass
class GenerationStats:
    """The times of a generation.

    Attributes:
        load_ms: loading program and method; of the first generation
        prompt_tokens: of the prompt, with those that begin it
        tokens: that were generated
        prefill_ms: calls with the prompt
        first_token_ms: from the start to the first token
        calls: of the program, in order
        ended: ``end of text``, ``stop text``, ``length`` or ``stopped``
    """

    load_ms: float = 0.0
    prompt_tokens: int = 0
    tokens: list[int] = field(default_factory=list[int])
    prefill_ms: float = 0.0
    first_token_ms: float = 0.0
    calls: list[CallTime] = field(default_factory=list[CallTime])
    ended: str = ""

    @property
    def decode_ms(self) -> list[float]:
        """Return the times of the calls behind the prompt."""
        return [one.ms for one in self.calls if one.kind == DECODE]

    @property
    def tokens_per_second(self) -> float:
        """Return the rate of the calls behind the prompt, 0 without any."""
        total = sum(self.decode_ms)
        return 1e3 * len(self.decode_ms) / total if total else 0.0


class Sampler:
    """Chooses the next token from logits."""

    def __init__(self, config: GenerationConfig) -> None:
        """Begin with the seed.

        Raises: ExecutionError InvalidArgument for values that choose nothing
        """
        if not config.temperature >= 0 or not 0 < config.top_p <= 1:
            raise invalid_argument("the temperature is at least 0, top_p above 0 and at most 1")
        if not -_SEEDS <= config.seed < 2 * _SEEDS:
            raise invalid_argument(f"the seed {config.seed} has more than 64 bits")
        self._config = config
        self._generator = torch.Generator().manual_seed(config.seed)

    def choose(self, logits: torch.Tensor) -> int:
        """Return a token.

        Shapes: logits: [vocabulary]

        Raises: ExecutionError for logits that are not finite
        """
        if self._config.temperature == 0:
            best = int(logits.argmax())  # of a NaN, if there is one
            if bool(logits[best].isnan()):
                raise ExecutionError(ErrorCode.Internal, _NOT_FINITE)
            return best
        shares = torch.softmax(logits.float() / self._config.temperature, -1)
        if not bool(shares.isfinite().all()):
            raise ExecutionError(ErrorCode.Internal, _NOT_FINITE)
        if self._config.top_p < 1:
            ordered, places = shares.sort(descending=True)
            before = ordered.cumsum(0) - ordered
            shares = torch.zeros_like(shares)
            shares[places] = ordered * (before < self._config.top_p)
        return int(torch.multinomial(shares, 1, generator=self._generator))
