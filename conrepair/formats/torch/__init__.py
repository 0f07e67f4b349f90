"""PyTorch models: load, read, edit."""
