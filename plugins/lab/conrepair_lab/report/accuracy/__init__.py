"""What was measured of operators, for people and programs."""
