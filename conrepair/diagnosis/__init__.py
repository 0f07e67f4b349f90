"""Which layer is at fault, what is wrong with it, and its repair."""
