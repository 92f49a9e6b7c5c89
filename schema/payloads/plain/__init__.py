"""Payload formats with one module each: keys, text, headers, opaque bytes."""
