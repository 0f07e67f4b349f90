"""Conversions between formats: one file per tool, or format that several read, a list of all, routes through them."""
