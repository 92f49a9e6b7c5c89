"""The TOSA backend; its operators serve every payload that is TOSA inside."""

from runtime.backends.tosa.backend import TosaBackend

__all__ = ["TosaBackend"]
