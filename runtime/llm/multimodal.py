"""Generation behind text, images and audio in any order: encoders give what a decoder reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from typing_extensions import override

from runtime.api import Runtime
from runtime.errors import ErrorCode, ExecutionError, invalid_argument
from runtime.llm.generation import PREFILL, CallTime, GenerationConfig, GenerationStats
from runtime.llm.text_runner import TextRunner

TOKENS, DECODER = "token_embedding", "text_decoder"
OnCall = Callable[[CallTime], object] | None


@dataclass(frozen=True, eq=False)
class Image:
    """An image for the method ``vision_encoder``.

    Attributes:
        pixels: as the method takes them; a first size of 1 may be left out
    """

    pixels: torch.Tensor


@dataclass(frozen=True, eq=False)
class Audio:
    """Audio for the method ``audio_encoder``.

    Attributes:
        features: as the method takes them; a first size of 1 may be left out
    """

    features: torch.Tensor


Part = str | Image | Audio
ENCODERS: dict[type, str] = {Image: "vision_encoder", Audio: "audio_encoder"}


def reads_embeddings(program: str | Path) -> bool:
    """Return whether a program generates behind embeddings, so that a text alone needs them too.

    Raises: ExecutionError for a file of another kind, OSError
    """
    return Runtime.get().load_program(str(program)).method_names >= {TOKENS, DECODER}


class MultimodalRunner(TextRunner):
    """Generates text with a program that reads embeddings of text, images and audio.

    The program has ``token_embedding`` for tokens, ``text_decoder`` for embeddings and their
    position, and ``vision_encoder`` or ``audio_encoder``; names as ExecuTorch's runner has them.
    """

    @override
    def generate(
        self,
        prompt: str | Sequence[Part],
        config: GenerationConfig | None = None,
        on_text: Callable[[str], object] | None = None,
        on_call: OnCall = None,
    ) -> GenerationStats:
        """Generate behind the conversation so far and the parts of a prompt, in their order.

        Args:
            prompt: text, images and audio; the last one is text
            config: as of ``TextRunner.generate``
            on_text: called with each piece of text
            on_call: called behind each call of the decoder

        Returns: tokens and times; times of calls are with their encoders

        Raises: ExecutionError for parts that do not fit, or whose method the program has not
        """
        parts = [prompt] if isinstance(prompt, str) else list(prompt)
        if not parts or not isinstance(parts[-1], str):
            raise invalid_argument("the prompt has to end with text")
        config = config or GenerationConfig()
        self.load()
        self._check_methods(parts)
        before = GenerationStats()
        if len(parts) > 1 and self._pending:
            self._forward(self._pending, PREFILL, before, on_call)
            self._pending = []
        for part in parts[:-1]:
            self._read_part(part, config.num_bos, before, on_call)
            config = replace(config, num_bos=0)
        stats = super().generate(parts[-1], config, on_text, on_call)
        spent = sum(one.ms for one in before.calls)
        stats.calls[:0] = before.calls
        stats.prompt_tokens += sum(one.tokens for one in before.calls)
        stats.prefill_ms += spent
        stats.first_token_ms += spent
        return stats

    def _read_part(self, part: Part, num_bos: int, stats: GenerationStats, on_call: OnCall) -> None:
        """Give the decoder one part; begin tokens stand before the first one."""
        tokens = self._begin_tokens(num_bos)
        if isinstance(part, str):
            tokens += self.encoded(part)
            self._check_known(tokens)
        if tokens:
            self._forward(tokens, PREFILL, stats, on_call)
        if not isinstance(part, str):
            start = time.perf_counter()
            data = part.pixels if isinstance(part, Image) else part.features
            found = self._embedded(ENCODERS[type(part)], data)
            self._decode(found, PREFILL, stats, on_call, start)

    def _embedded(self, name: str, data: torch.Tensor) -> torch.Tensor:
        """Return the embeddings that a method gives.

        Shapes: result: [1, positions, width]
        """
        method = self._methods[name]
        rank = len(method.metadata.input_tensor_meta(0).sizes())
        (found, *_) = method.execute([data.unsqueeze(0) if data.dim() == rank - 1 else data])
        found = found.unsqueeze(0) if found.dim() == 2 else found
        if found.dim() != 3 or found.shape[0] != 1:
            shape = list(found.shape)
            raise invalid_argument(f"{name}: expected [1, positions, width], found {shape}")
        return found.clone()  # the memory is that of the next call, too

    @override
    def _forward(
        self, tokens: list[int], kind: str, stats: GenerationStats, on_call: OnCall
    ) -> torch.Tensor:
        """Run tokens through embedding and decoder; return the last logits."""
        longest = int(self._methods[TOKENS].metadata.input_tensor_meta(0).sizes()[1])
        logits = torch.empty(0)
        for at in range(0, len(tokens), longest):
            start = time.perf_counter()
            found = self._embedded(TOKENS, torch.tensor([tokens[at : at + longest]]))
            logits = self._decode(found, kind, stats, on_call, start)
        return logits

    def _decode(
        self,
        embeddings: torch.Tensor,
        kind: str,
        stats: GenerationStats,
        on_call: OnCall,
        start: float,
    ) -> torch.Tensor:
        """Run embeddings through the decoder, in calls as long as it allows.

        Raises: ExecutionError for more positions than the context has
        """
        count, method = embeddings.shape[1], self._methods[DECODER]
        if not self.rolls and self.position + count > self.context:
            words = f"{count} positions at {self.position}, the context {self.context}"
            raise invalid_argument(f"the prompt has {words}")
        longest = int(method.metadata.input_tensor_meta(0).sizes()[1])
        one_position = method.metadata.input_tensor_meta(1).sizes() in ((1,), ())
        logits, untyped = torch.empty(0), cast("Any", torch)
        parts: tuple[torch.Tensor, ...] = untyped.split(embeddings, longest, 1)
        for part in parts:
            size = part.shape[1]
            end = self.position + (1 if one_position else size)
            (found, *_) = method.execute([part.contiguous(), torch.arange(self.position, end)])
            call = CallTime(kind, self.position, size, (time.perf_counter() - start) * 1e3)
            start = time.perf_counter()
            stats.calls.append(call)
            if on_call is not None:
                on_call(call)
            logits = found.reshape(-1, found.shape[-1])[-1].clone()
            self.position += size
        return logits

    def _check_methods(self, parts: Sequence[Part]) -> None:
        """Refuse parts that the program has no method for."""
        for name in dict.fromkeys(ENCODERS[type(one)] for one in parts if type(one) in ENCODERS):
            if name not in self._methods:
                there = ", ".join(sorted(self._methods))
                raise invalid_argument(f"the program has no method {name}, but {there}")

    @override
    def _used(self, names: set[str]) -> list[str]:
        missing = [name for name in (TOKENS, DECODER) if name not in names]
        if missing:
            there = ", ".join(sorted(names))
            words = f"it has no {' and no '.join(missing)}, but {there}"
            raise ExecutionError(
                ErrorCode.InvalidArgument,
                f"{self.program} is not a model of text and images: {words}",
            )
        return [name for name in (TOKENS, DECODER, *ENCODERS.values()) if name in names]
