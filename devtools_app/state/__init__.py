"""What the window shows and remembers, as frozen values, and how one follows from another."""
