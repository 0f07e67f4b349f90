"""Models as graphs that can be observed and cut anywhere, one file per framework."""
