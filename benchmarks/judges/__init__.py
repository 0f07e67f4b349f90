"""What both laws of judging say of pairs whose label is known."""
