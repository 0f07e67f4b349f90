"""Whether a difference between two computations of a network is explained, and by what."""
