"""Conversions between formats: one file per tool or pair of formats, a list of all, routes through them."""
