"""The methods of searching; `all_methods.py` knows them by name."""
