"""Keras models: load, read, edit."""
