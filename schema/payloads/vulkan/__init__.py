"""Vulkan delegate payloads; the WebGPU backend writes the same under the same id."""

from schema.payloads.vulkan.payload import decode_payload

__all__ = ["decode_payload"]
