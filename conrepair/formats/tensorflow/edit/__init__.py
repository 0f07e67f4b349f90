"""Changes of TensorFlow graphs in their own format."""
