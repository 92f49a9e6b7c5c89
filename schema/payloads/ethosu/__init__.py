"""Arm Ethos-U delegate payloads: the block stream that Vela's output is packed into."""

from schema.payloads.ethosu.payload import decode_payload

__all__ = ["decode_payload"]
