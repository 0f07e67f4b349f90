"""TFLite files as networks that can be cut."""
