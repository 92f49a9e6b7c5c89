"""The documented table of ``Inspector.calculate_numeric_gap``; loads torch."""
