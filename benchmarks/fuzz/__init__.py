"""Damaged files, drawn configurations and drawn command lines: each ends in an exit code and a sentence."""
