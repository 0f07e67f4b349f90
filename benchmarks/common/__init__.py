"""Models with known faults and correct conversions, which several benchmarks are about."""
