"""Conversions between formats: one file per converter, a list of all, routes through them."""
