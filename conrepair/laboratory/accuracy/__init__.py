"""How exact each operator of each system is: measured over all magnitudes, and told in words."""
