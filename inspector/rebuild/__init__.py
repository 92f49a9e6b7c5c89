"""Recorded programs as objects of torch, read by torch's own deserializer."""
