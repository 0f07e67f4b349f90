"""Networks made from real ones: a part of a model, changed while it stays valid."""
