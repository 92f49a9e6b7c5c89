"""Delegation: parts of an edge program are handed to backends, which make payloads of them."""
