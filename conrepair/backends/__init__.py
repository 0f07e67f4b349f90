"""Where models run. TVM's place is `conrepair/backends/tvm/`."""
