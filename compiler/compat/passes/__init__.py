"""Base classes and helpers of passes that only programs written for ExecuTorch use."""
