"""Tools and libraries that live in Python environments of their own."""
