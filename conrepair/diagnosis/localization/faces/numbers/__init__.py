"""Parameters and values that aren't what they should be."""
