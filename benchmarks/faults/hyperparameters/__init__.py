"""Faults of kind "hyperparameters"."""
