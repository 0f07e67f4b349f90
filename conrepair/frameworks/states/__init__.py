"""What models keep from call to call: one file per framework, found in the graph."""
