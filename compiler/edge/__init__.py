"""The edge dialect: core ATen operators without views, in-place writes or bare scalars."""
