"""Known conversion faults, to inject into models that are right."""
