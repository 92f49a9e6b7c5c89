"""Payloads of the native backend: an fx graph by operator name."""

from schema.payloads.native.payload import decode_payload

__all__ = ["decode_payload"]
