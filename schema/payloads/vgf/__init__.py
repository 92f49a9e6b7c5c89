"""Arm VGF delegate payloads: a container of SPIR-V modules, resources and constants."""

from schema.payloads.vgf.payload import decode_payload

__all__ = ["decode_payload"]
