"""The Vulkan backend, and WebGPU, which writes the same payloads."""

from runtime.backends.vulkan.backend import VulkanBackend

__all__ = ["VulkanBackend"]
