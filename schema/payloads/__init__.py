"""Delegate payloads: the bytes that backends wrote, decoded into one form for all backends.

``decode`` never raises: an unknown backend or a damaged payload is a box with id, size and issues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import cast

from schema.errors import FormatError, Issue, Severity
from schema.objects.cyclic_gc import gc_suspended
from schema.payloads.model import (
    Constant,
    Decoder,
    Part,
    Payload,
    RuntimeOperator,
    Source,
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

# Where the decoder of a backend is; a module is loaded when the first payload needs it, so that
# opening a file without delegates costs nothing.
DECODERS: Mapping[str, str] = MappingProxyType(
    {
        "XnnpackBackend": "xnnpack:decode_payload",
        "VulkanBackend": "vulkan:decode_payload",
        "CoreMLBackend": "coreml:decode_payload",
        "OpenvinoBackend": "openvino:decode_payload",
        "TOSABackend": "tosa:decode_payload",
        "EthosUBackend": "ethosu:decode_payload",
        "VgfBackend": "vgf:decode_payload",
        "MPSBackend": "mps:decode_payload",
        "NativeBackend": "native:decode_payload",
        "MLXBackend": "mlx:decode_payload",
        "CudaBackend": "plain.aoti:decode_payload",
        "MetalBackend": "plain.aoti:decode_payload",
        "QnnBackend": "qnn:decode_payload",
        "NeuropilotBackend": "plain.vendor:decode_mediatek",
        "NeutronBackend": "plain.neutron:decode_payload",
        "EnnBackend": "plain.vendor:decode_samsung",
        "BackendWithCompilerDemo": "plain.demo:decode_text",
        "BackendWithDelegateMappingDemo": "plain.demo:decode_text",
        "DemoBackend": "plain.demo:decode_plain_text",
        "ExampleBackend": "plain.demo:decode_plain_text",
        "ExecutorBackend": "plain.demo:decode_program",
    }
)
# (offset, mark, decoder) for backends that are not in the table; ArmBackend of old releases is
# not, since it wrote either Vela streams or TOSA
MARKS: tuple[tuple[int, bytes, str], ...] = (
    (4, b"XH00", "xnnpack:decode_payload"),
    (4, b"XN01", "xnnpack:decode_payload"),
    (4, b"XN00", "xnnpack:decode_payload"),
    (4, b"VH00", "vulkan:decode_payload"),
    (4, b"VK00", "vulkan:decode_payload"),
    (4, b"MP00", "mps:decode_payload"),
    (4, b"MLX0", "mlx:decode_payload"),
    (4, b"TOSA", "tosa:decode_payload"),
    (4, b"NPTG", "native:decode_payload"),
    (4, b"ET12", "plain.demo:decode_program"),
    (0, b"vela_bin_stream", "ethosu:decode_payload"),
    (0, b"VGF1", "vgf:decode_payload"),
    (0, b"CMJR", "coreml:decode_payload"),
    (0, b"RR_UPCVO", "openvino:decode_payload"),
    (0, (0x5678ABCD).to_bytes(4, "little"), "qnn:decode_payload"),
    (0, (0x1234ABCD).to_bytes(4, "little"), "qnn:decode_payload"),
)


def decode(
    backend_id: str,
    data: memoryview | bytes,
    named_data: Mapping[str, memoryview] = MappingProxyType({}),
    compile_specs: Sequence[tuple[str, bytes]] = (),
) -> Payload:
    """Return the decoded payload; ``graph`` is None where it cannot be read.

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
    source = Source(backend_id, view, named_data, compile_specs)
    place = DECODERS.get(backend_id) or _by_mark(view)
    with gc_suspended():  # 100,000 nodes take 1.5 s; beside a large session 5 s with collections
        return _decoder(place)(source)


def _by_mark(data: memoryview) -> str:
    for offset, mark, place in MARKS:
        if bytes(data[offset : offset + len(mark)]) == mark:
            return place
    return "plain.opaque:decode_payload"


def _decoder(place: str) -> Decoder:
    module, _, name = place.partition(":")
    return cast(Decoder, getattr(import_module(f"schema.payloads.{module}"), name))


def describe_compile_specs(
    backend_id: str, specs: Sequence[tuple[str, bytes]]
) -> tuple[tuple[str, object], ...]:
    """Return (key, value) in order, values as scalars, bools, strings or plain JSON.

    A value that does not have the form its key calls for is shown like one of an unknown key:
    as text where it is text, else in hexadecimal digits.
    """
    # Loaded when asked for, like the decoders, of whose tables it needs some.
    from schema.payloads.settings.compile_specs import describe

    return describe(backend_id, specs)
