"""Jobs as the window follows them: started, polled, cancelled; threads for what is only slow."""
