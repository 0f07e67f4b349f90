"""Faults of kind "parameters"."""
