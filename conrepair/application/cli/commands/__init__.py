"""What each verb of the command line does: read its options, call, print."""
