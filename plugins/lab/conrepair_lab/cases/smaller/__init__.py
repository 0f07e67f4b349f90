"""Reduction steps that make a case smaller, a file for each kind."""
