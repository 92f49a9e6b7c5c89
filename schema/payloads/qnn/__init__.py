"""QNN delegate payloads: a header around the vendor's context binary, or a QCIR graph."""

from schema.payloads.qnn.payload import decode_payload

__all__ = ["decode_payload"]
