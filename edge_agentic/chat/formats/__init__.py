"""How each family of models writes its tool calls: one reader a format."""
