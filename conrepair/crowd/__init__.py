"""What other machines load: see `worker`."""
