"""Random networks, systems that run them, and what's wrong with these."""
