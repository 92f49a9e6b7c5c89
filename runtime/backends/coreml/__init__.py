"""Runs MIL programs, operator by operator."""

from runtime.backends.coreml.backend import CoreMLBackend

__all__ = ["CoreMLBackend"]
