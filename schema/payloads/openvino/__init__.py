"""OpenVINO delegate payloads: an exported compiled model of the CPU plugin."""

from schema.payloads.openvino.payload import decode_payload

__all__ = ["decode_payload"]
