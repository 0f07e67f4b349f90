"""Faults of attention that converters make, put straight into graphs."""
