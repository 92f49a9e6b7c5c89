"""The documented Python API under its documented names; `import inspector` offers all of it."""
