"""What a network computes when nothing is rounded, who says so, and how far rounding may lead from it."""
