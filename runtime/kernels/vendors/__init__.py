"""Kernels of vendors' operators, which programs call without a delegate."""
