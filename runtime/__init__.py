"""Loads and runs programs over torch tensors, and records what happened."""
