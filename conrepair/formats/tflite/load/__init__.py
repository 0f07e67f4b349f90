"""TFLite files: described, screened, loaded and run."""
