"""Language models: configuration, decoders, checkpoints, export with a KV cache."""
