"""Forms in which networks and kernels lose digits: recognised, told in words, written in a form that keeps them."""
