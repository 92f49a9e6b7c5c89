"""Names that programs written for ExecuTorch use and nothing here needs."""
