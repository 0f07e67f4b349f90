"""Statistics of suspicion, where nothing can be cut."""
