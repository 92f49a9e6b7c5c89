"""Bisection: the smallest set of nodes to remove from delegates that lets a metric meet its bound."""
