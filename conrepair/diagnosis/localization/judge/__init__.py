"""Which pieces are guilty, and what the outputs say."""
