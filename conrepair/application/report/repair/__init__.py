"""Repairs in files and on the console."""
