"""Apache TVM: import, build, run, and the devices that it reaches."""
