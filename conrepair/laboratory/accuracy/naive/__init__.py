"""Forms of functions that lose digits, as libraries have them."""
