"""Faults of kind "precision"."""
