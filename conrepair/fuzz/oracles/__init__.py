"""What is wrong with a trial, a file for each way to be wrong."""
