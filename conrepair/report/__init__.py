"""Saved results and tables, as programs read them."""
