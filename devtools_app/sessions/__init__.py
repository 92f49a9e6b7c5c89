"""Open sessions: loaded, watched, reloaded, restored, each with the recipes of its variants."""
