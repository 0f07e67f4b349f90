"""Models on disk, in whichever format: what they are, what they hold, whether they may be loaded."""
