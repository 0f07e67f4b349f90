"""A library that starts a thread when it's imported, as many do that compute."""

from __future__ import annotations

import threading

threading.Thread(target=threading.Event().wait, daemon=True).start()
