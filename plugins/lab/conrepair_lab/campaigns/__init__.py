"""Many networks on many targets: made, converted, narrowed to what a target takes."""
