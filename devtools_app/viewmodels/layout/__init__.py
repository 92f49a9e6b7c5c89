"""Compound layered layout of graphs: nested clusters, equal ones laid out once; free of Qt."""
