"""Changes of PyTorch models in their own format."""
