"""Rewrites the imports of scripts written for the `executorch` package to ours."""
