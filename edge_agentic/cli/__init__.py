"""The command line: one module per group, no logic."""
