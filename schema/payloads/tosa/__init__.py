"""TOSA payloads: the bare flatbuffer of the Arm reference backend."""

from schema.payloads.tosa.payload import decode_payload

__all__ = ["decode_payload"]
