"""Scripts that run in processes of their own (`conrepair.ground.runtime.outside.scripts`), each with a `main`.

Those for other environments import nothing of conrepair, which isn't installed there.
"""
