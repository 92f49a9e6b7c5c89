"""Core ML delegate payloads: a flattened folder with a MIL program, weights and handles."""

from schema.payloads.coreml.payload import decode_payload

__all__ = ["decode_payload"]
