"""How many faults repair mends, by how small changes, and that it mends nothing where nothing is wrong."""
