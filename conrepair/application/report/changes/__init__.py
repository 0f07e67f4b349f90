"""Two runs of the same models: what got better, worse, is new or gone."""
