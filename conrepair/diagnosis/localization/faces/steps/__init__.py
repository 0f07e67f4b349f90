"""Nodes read as steps, and steps paired."""
