"""Generic adapters from view-models to Qt item models."""
