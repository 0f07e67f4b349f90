"""Equations as text: operators in terms of others, for whoever writes, looks for or computes them."""
