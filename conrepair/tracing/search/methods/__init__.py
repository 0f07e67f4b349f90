"""The methods of searching, one a file; `all_methods.py` knows them by name."""
