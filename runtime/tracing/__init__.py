"""Records events and values of a run: the tracer and where debug buffers are written."""
