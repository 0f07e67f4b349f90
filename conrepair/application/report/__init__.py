"""What a person and a machine read of an audit."""
