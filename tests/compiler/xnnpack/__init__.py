"""Tests of the XNNPACK partitioner and payload writer."""
