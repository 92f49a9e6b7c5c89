"""Graphs of torch.export as serde JSON."""
