"""What could fix a guilty piece, from the smallest edit up: one module for each sort of edit."""
