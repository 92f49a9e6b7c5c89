"""MPS delegate payloads, written by releases up to 1.4."""

from schema.payloads.mps.payload import decode_payload

__all__ = ["decode_payload"]
