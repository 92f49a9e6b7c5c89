"""Quantization of exported programs: observers, calibration, conversion."""
