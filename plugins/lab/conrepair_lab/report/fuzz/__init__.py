"""What a campaign found, for people and programs."""
