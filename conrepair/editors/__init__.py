"""Changes of a model in its own format, behind one face: one module for each framework."""
