"""What a system does with a case, whether that's wrong, and the finding that it becomes."""
