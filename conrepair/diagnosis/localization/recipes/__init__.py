"""How inputs are prepared, and how they should be."""
