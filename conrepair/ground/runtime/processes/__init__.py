"""Worker processes: what they may reach, how long they take, what's left of them."""
