"""PyTorch models as networks that can be cut."""
