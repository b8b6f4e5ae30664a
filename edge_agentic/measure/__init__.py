"""Journal events to metrics: pure functions, each formula once."""
