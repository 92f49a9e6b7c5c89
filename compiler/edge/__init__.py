"""Lowering of exported programs to the edge dialect: core ATen operators, functional, no views."""
