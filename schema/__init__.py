"""The meaning of bytes: one module for each ExecuTorch file format, free of torch and Qt."""
