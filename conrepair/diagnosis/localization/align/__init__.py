"""Which tensors of two networks stand for one another."""
