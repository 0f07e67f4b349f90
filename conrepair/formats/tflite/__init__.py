"""TFLite files: load, read, edit."""
