"""Forms: unusual but valid nodes that exporters don't write and every pass must handle."""
