"""What each operator takes and makes: an entry of a few lines for each, in the file of its family."""
