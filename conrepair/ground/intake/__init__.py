"""What people hand over in Python, as files: models of any framework, data of any shape."""
