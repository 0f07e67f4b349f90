"""Patterns that set optimizations off, and the units that real networks are made of."""
