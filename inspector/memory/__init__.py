"""The memory plan: which value occupies which bytes, and when."""
