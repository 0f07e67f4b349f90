"""What a model's file holds, read without running it: for models that no library here can run."""
