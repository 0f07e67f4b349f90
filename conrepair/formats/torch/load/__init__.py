"""PyTorch models: described, screened, loaded and run."""
