"""What runs jobs: a table of them, a scheduler with its store, sessions."""
