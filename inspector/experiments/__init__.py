"""Experiments: gates, sweeps, bisections."""
