"""What the laboratory writes and shows."""
