"""Names of backends as the documented configuration has them."""
