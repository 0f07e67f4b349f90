"""The laboratory of conrepair: random networks, campaigns, traces, and how exact operators are."""
