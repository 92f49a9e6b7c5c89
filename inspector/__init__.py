"""The analysis API and command line: load, join, analyse and export ExecuTorch artifacts."""
