"""What workers do: one function a kind of job, plain values in and out."""
