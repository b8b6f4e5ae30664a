"""Chat-template rendering and tool-call formats: render, parse, constrain."""
