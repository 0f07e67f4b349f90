"""How far apart two settings of a system are, where that shows, which kernels and switches make it, and why."""
