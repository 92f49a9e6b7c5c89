"""XNNPACK delegate payloads, read and written field for field."""

from schema.payloads.xnnpack.codec import constant_data, decode, encode
from schema.payloads.xnnpack.model import XNNGraph
from schema.payloads.xnnpack.payload import decode_payload

__all__ = ["XNNGraph", "constant_data", "decode", "decode_payload", "encode"]
