"""Recipes: how a program was made, read, changed, and written again."""
