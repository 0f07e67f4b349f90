"""What networks compute, whole and in pieces, and what is kept of that."""
