"""What all stands on: values, files, processes, operators, equations."""
