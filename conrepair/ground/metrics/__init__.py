"""Pure functions on numpy arrays that say how far two runs of a network are apart."""
