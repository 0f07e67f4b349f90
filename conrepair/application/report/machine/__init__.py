"""What other programs read of a run: JUnit, SARIF, a comment for a pull request."""
