"""Requirements that a program has to meet: what is asked, what was found, whether it is met."""
