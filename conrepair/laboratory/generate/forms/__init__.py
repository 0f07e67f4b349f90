"""Legal nonsense: what no sane exporter writes, and every pass must bear."""
