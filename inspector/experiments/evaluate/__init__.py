"""Evaluations of variants on a data set: error distributions, worst samples."""
