"""Compile specs of backends as readable values."""
