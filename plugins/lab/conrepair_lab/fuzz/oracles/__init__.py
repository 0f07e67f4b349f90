"""Oracles, which find what is wrong with a trial: its end, shapes and types, numbers, repeated runs, gradients."""
