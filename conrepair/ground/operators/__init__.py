"""Operators: what is known of each, whichever format or framework it stands in."""
