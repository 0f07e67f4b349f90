"""How many faults repair fixes, by how small changes, and that it fixes nothing where nothing is wrong."""
