"""The delegate payloads inside the committed programs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from schema import payloads
from schema.errors import FormatError
from schema.payloads import Payload
from schema.program import decode

DATA = Path(__file__).resolve().parents[1] / "data"


@dataclass(frozen=True)
class Blob:
    """One payload with everything its decoder may need."""

    label: str
    backend_id: str
    data: bytes
    named: dict[str, memoryview]
    specs: tuple[tuple[str, bytes], ...]

    def decode(self, data: bytes | None = None) -> Payload:
        return payloads.decode(
            self.backend_id, self.data if data is None else data, self.named, self.specs
        )

    def decode_strict(self, data: bytes) -> Payload:
        return payloads.decode_strict(self.backend_id, data, self.named, self.specs)

    def __str__(self) -> str:
        return self.label


@lru_cache(maxsize=1)
def all_blobs() -> tuple[Blob, ...]:
    """Return every payload of every readable program under tests/data."""
    found: list[Blob] = []
    for path in sorted(DATA.rglob("*.pte")):
        if "damaged" not in path.parts:
            found += _blobs(path)
    return tuple(found)


def _blobs(path: Path) -> list[Blob]:
    try:
        program = decode(path.read_bytes())
    except FormatError:
        return []
    label = path.relative_to(DATA).as_posix().removesuffix(".pte").removesuffix("/model")
    return [
        Blob(
            f"{label}:{plan.name}:{index}",
            delegate.id,
            bytes(program.delegate_data(delegate)),
            program.named_data_map(),
            tuple((spec.key, bytes(spec.value)) for spec in delegate.compile_specs),
        )
        for plan in program.plans
        for index, delegate in enumerate(plan.delegates)
    ]


def blob(name: str, index: int = 0) -> Blob:
    """Return the payload of ``corpus/payloads/<name>.pte``."""
    wanted = f"corpus/payloads/{name}:forward:{index}"
    return next(item for item in all_blobs() if item.label == wanted)


def different_blobs() -> tuple[Blob, ...]:
    """Return one payload for each different content."""
    return tuple({item.data: item for item in all_blobs()}.values())
