"""TensorFlow graphs: load, read, edit."""
