"""What could mend a guilty piece, from the smallest edit up: one module for each sort of edit."""
