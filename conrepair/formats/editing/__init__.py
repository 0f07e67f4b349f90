"""Changes of models, whatever their format."""
