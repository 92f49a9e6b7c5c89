"""OpenVINO: payloads run by its own runtime, where the package is installed."""

from runtime.backends.openvino.backend import OpenvinoBackend

__all__ = ["OpenvinoBackend"]
