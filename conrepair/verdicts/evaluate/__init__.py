"""Comparisons of whole runs: labels, ranks, tensors, times, and the verdict."""
