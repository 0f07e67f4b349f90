"""Conversions between formats: one file per converter, a registry, routes through them."""
