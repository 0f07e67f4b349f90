"""Faults of kind "graph"."""
