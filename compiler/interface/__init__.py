"""What backends and partitioners implement: their base classes, compile specs, named data."""
