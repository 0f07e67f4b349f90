"""Options of the laboratory's verbs."""
