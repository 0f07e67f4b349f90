"""Changes of TFLite files in their own format."""
