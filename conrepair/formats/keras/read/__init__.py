"""Keras models as networks that can be cut."""
