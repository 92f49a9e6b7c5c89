"""Requirements that a program has to meet: the bound, the value, whether it is met."""
