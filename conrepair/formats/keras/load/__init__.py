"""Keras models: described, screened, loaded and run."""
