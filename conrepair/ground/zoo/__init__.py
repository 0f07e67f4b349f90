"""Pretrained models and photos, by name, from packages that are used as data carriers only."""
