"""Scripts that run in processes of their own (see `conrepair.runtime.outside.scripts`), each with a function `main`.

Those for other environments import nothing of conrepair, which isn't installed there.
"""
