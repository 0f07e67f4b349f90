"""Tables of how exact each operator of each system is, measured on inputs of all magnitudes."""
