"""Generates text with programs of language models: tokenizers, sampling, the loop over tokens."""
