"""The XNNPACK backend of the runtime."""

from runtime.backends.xnnpack.backend import XnnpackBackend

__all__ = ["XnnpackBackend"]
