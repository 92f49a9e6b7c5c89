"""Recipes: how a program was built; reading, changing and writing them."""
