"""Networks grown from real ones: a piece of somebody's model, changed while it stays valid."""
