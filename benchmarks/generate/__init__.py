"""What is measured of the generator of networks."""
