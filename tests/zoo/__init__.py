"""Real architectures with random weights, compiled and run in every way: python -m tests.zoo."""
