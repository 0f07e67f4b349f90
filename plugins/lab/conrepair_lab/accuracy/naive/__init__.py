"""Unstable formulas of functions, as libraries compute them."""
