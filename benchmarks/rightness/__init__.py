"""Whether targets that are only written otherwise are left alone."""
