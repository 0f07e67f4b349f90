"""Faults of kind "input"."""
