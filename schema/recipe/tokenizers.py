"""Tokenizers that a configuration and a request name without a file."""

BYTE_TOKENIZER = "bytes"  # one token for each byte
