"""What two or more programs differ in, and whether a difference in time is real."""
