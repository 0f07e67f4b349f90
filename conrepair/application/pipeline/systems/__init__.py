"""What is asked of systems with a person's own networks: traces and campaigns."""
