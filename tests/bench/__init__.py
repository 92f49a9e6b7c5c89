"""Speed, side by side with the stock tool or against a limit: python -m tests.bench."""
