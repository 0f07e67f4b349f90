"""What every room stands on: errors, files, worker processes, the store, progress."""
