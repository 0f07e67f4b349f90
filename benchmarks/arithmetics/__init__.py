"""Whether the arithmetic that a device computes in is told from a fault."""
