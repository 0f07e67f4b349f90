"""Faults of kind "structure"."""
