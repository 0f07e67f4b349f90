"""Cases (a network, inputs, options) on which something fails, and their reduction to smaller ones."""
