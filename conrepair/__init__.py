"""conrepair audits what happens to a neural network when its representation changes."""

__version__ = "0.1.0"
