"""Changes of Keras models in their own format."""
