"""The memory plan: who occupies which bytes, and when."""
