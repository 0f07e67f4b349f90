"""What the laboratory's verbs do."""
