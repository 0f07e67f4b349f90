"""What inputs and weights hold: values for which every tensor of a network is finite."""
