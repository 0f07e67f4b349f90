"""How far a job reaches outside of its process."""

from __future__ import annotations

CONFINED, GPU, NETWORK, OPEN = "confined", "gpu", "network", "open"
"""Its folders; these and the GPU; these and the network; everything, as programs of the user's own do."""

FORKING = "forking"
"""As `CONFINED`, and it sets groups of processes: what forks such workers, and runs nothing of a model."""
