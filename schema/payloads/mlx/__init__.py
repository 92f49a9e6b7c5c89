"""MLX delegate payloads: chains of operations over indexed slots."""

from schema.payloads.mlx.payload import decode_payload

__all__ = ["decode_payload"]
