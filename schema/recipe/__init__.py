"""What recipes name: standard passes, memory planners and patterns of names."""
