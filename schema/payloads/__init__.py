"""Delegate payloads: the bytes that backends wrote, decoded into one form for all backends.

``decode`` never raises: an unknown backend or a damaged payload is a box with id, size and issues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import cast

from schema.backends import BACKENDS, backend_of, resolve
from schema.errors import FormatError, Issue, Severity
from schema.objects.cyclic_gc import gc_suspended
from schema.payloads.model import (
    Constant,
    Decoder,
    Part,
    Payload,
    PayloadSource,
    RuntimeOperator,
    total_bytes,
)
from schema.payloads.order import join_by_order, operator_name
from schema.payloads.parts import whole
from schema.payloads.plain.opaque import embedded_texts, entropy, sha256

__all__ = [
    "Constant",
    "Part",
    "Payload",
    "RuntimeOperator",
    "decode",
    "decode_strict",
    "describe_compile_specs",
    "embedded_texts",
    "entropy",
    "join_by_order",
    "operator_name",
    "sha256",
    "total_bytes",
]

_OPAQUE = "schema.payloads.plain.opaque:decode_payload"


def decode(
    backend_id: str,
    data: memoryview | bytes,
    named_data: Mapping[str, memoryview] = MappingProxyType({}),
    compile_specs: Sequence[tuple[str, bytes]] = (),
) -> Payload:
    """Return the decoded payload; ``graph`` is None if it cannot be read.

    Args:
        backend_id: as in the program
        data: the payload; the result holds views into it
        named_data: named blobs of the program, and of external data files
        compile_specs: as in the program
    """
    view = memoryview(data).toreadonly()
    try:
        return decode_strict(backend_id, view, named_data, compile_specs)
    except (FormatError, RecursionError) as error:
        issue = Issue(Severity.ERROR, f"{backend_id} payload", str(error))
        parts = whole(len(view), f"{backend_id or 'unnamed'} payload", "undecoded")
        return Payload(backend_id, "unreadable", len(view), parts=parts, issues=(issue,))


def decode_strict(
    backend_id: str,
    data: memoryview | bytes,
    named_data: Mapping[str, memoryview] = MappingProxyType({}),
    compile_specs: Sequence[tuple[str, bytes]] = (),
) -> Payload:
    """Return the decoded payload, like `decode`.

    Raises: FormatError if the payload is damaged; an unknown backend is not an error
    """
    view = memoryview(data).toreadonly()
    source = PayloadSource(backend_id, view, named_data, compile_specs)
    # A decoder is loaded when the first payload needs it: opening a file without delegates costs
    # nothing.
    decoder = cast(Decoder, resolve(backend_of(backend_id).decoder or _by_mark(view)))
    with gc_suspended():  # 100,000 nodes take 1.5 s; beside a large session 5 s with collections
        return decoder(source)


def _by_mark(data: memoryview) -> str:
    for backend in BACKENDS.values():
        for offset, mark in backend.marks:
            if bytes(data[offset : offset + len(mark)]) == mark:
                return backend.decoder
    return _OPAQUE


def describe_compile_specs(
    backend_id: str, specs: Sequence[tuple[str, bytes]]
) -> tuple[tuple[str, object], ...]:
    """Return (key, value) in order, values as scalars, bools, strings or plain JSON.

    A value in an unexpected form is shown like that of an unknown key:
    as a string if printable, else in hexadecimal digits.
    """
    # Imported on first use, like the decoders, some of whose tables it needs.
    from schema.payloads.settings.compile_specs import describe

    return describe(backend_id, specs)
