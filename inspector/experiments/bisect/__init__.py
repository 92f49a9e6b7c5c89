"""Which nodes to take out of a delegate: the smallest set that brings a metric under its bound."""
