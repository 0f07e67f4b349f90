"""Faults that hit every layer of a sort: whether they're found, named as few, and repaired."""
