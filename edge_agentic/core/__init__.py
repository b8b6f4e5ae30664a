"""Values that every other part shares: messages, tool calls, clocks, errors, resource paths."""
