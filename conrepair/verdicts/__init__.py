"""Whether a difference is rounding: exact values, bounds, arithmetics, verdicts."""
