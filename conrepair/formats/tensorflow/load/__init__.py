"""TensorFlow graphs: described, screened, loaded and run."""
