"""The attributes of an instruction's node, of which a large program has tens of thousands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from typing_extensions import override

from schema.graph import EMPTY

_ALWAYS = ("instruction", "chain")


class InstructionFacts(Mapping[str, object]):
    """Where an instruction is, and what some kinds have beyond that; a fifth of a dict in bytes.

    Args:
        instruction: index over all chains
        chain: index in the plan
        extra: further facts, by name
    """

    __slots__ = ("_chain", "_extra", "_instruction")

    def __init__(self, instruction: int, chain: int, extra: Mapping[str, object] = EMPTY) -> None:
        self._instruction = instruction
        self._chain = chain
        self._extra = extra

    @override
    def __getitem__(self, key: str) -> object:
        if key == "instruction":
            return self._instruction
        return self._chain if key == "chain" else self._extra[key]

    @override
    def __iter__(self) -> Iterator[str]:
        yield from _ALWAYS
        yield from self._extra

    @override
    def __len__(self) -> int:
        return len(_ALWAYS) + len(self._extra)

    @override
    def __repr__(self) -> str:
        return repr(dict(self))
