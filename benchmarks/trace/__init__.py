"""What tracing finds, and how surely."""
