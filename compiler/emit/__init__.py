"""Emission: from edge programs and memory plans to the tables and bytes of a program file."""
