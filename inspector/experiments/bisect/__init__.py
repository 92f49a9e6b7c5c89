"""Bisection: the smallest set of nodes to remove from delegates so that a metric is in bounds."""
