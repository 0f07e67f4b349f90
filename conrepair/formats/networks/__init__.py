"""A model as a graph that can be observed and cut anywhere, whatever its format."""
