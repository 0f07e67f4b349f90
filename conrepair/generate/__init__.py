"""Random networks, for programs that measure them."""
