"""Names that only the documented ExecuTorch API needs."""
