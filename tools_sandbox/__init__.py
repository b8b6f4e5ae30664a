"""Runs an agent's commands in isolation, with bounded output and ends them for good."""
