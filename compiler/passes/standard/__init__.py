"""The standard passes, a file each."""
