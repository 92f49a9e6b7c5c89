"""Names that only programs written for ExecuTorch use."""
