"""Screening: all small changes of all patterns, plain against optimized, before anything is judged."""
