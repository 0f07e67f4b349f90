"""The stages of an audit, one module each; what they know stands in `state`."""
