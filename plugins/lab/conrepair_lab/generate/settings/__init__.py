"""What specifications of operators are written against, and how a node is drawn by them."""
