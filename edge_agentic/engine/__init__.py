"""What runs a model: one call, `generate(request) -> Completion`."""
