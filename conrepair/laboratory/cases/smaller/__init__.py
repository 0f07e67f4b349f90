"""Ways to be smaller, a file each."""
