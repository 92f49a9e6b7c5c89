"""Which core ATen operators we compile and the stock runtime runs, for which element types."""
