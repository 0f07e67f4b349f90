"""Networks with inputs and options on which something fails, and smaller ones on which it still does."""
