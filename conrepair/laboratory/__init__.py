"""Random networks, the systems that run them (converters, runtimes, compilers), and the faults of these systems."""
