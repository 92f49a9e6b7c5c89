"""Programs with more delegates than a cache of results keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inspector.files.payloads import delegate_payload
from schema import payloads, program
from schema.payloads import Payload

CORPUS = Path(__file__).parents[1] / "data/corpus"


def test_payloads_of_many_delegates_are_decoded_once_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = next(p for p in sorted(CORPUS.glob("v1.5.1/**/*.pte")) if "xnnpack" in str(p).lower())
    found = program.decode(path.read_bytes())
    plan = found.plans[0]
    many = tuple(replace(plan.delegates[0]) for _ in range(300))
    plan = replace(plan, delegates=many)
    calls: list[str] = []
    decode = payloads.decode

    def counted(*given: object) -> Payload:
        calls.append("")
        return decode(*given)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(payloads, "decode", counted)
    first = [delegate_payload(found, plan, index) for index in range(300)]
    again = [delegate_payload(found, plan, index) for index in range(300)]
    assert len(calls) == 300
    assert all(a is b for a, b in zip(first, again, strict=True))
