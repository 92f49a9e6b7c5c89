"""Payload formats of one module each: keys, text, headers, opaque bytes."""
