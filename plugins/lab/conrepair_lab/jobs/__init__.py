"""What workers do for the laboratory."""
