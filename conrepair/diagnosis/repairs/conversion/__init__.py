"""Repair a conversion that fails: what stops it, and what gets around that."""
