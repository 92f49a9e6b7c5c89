"""Jobs of the window: started, polled, cancelled; threads for slow computations."""
