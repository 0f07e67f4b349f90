"""One folder a format (load, read, edit), and where models run and are converted."""
