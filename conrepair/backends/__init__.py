"""Where models run."""
