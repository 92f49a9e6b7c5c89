"""The memory of tensors: slots, planned buffers, and pages released to the machine."""
