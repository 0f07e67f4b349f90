"""Where a target stops being its source: alignment, isolation, diagnosis."""
