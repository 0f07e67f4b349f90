"""Faults of kind "preprocessing"."""
