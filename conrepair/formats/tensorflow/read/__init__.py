"""TensorFlow graphs as networks that can be cut."""
