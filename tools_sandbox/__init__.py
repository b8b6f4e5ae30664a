"""Runs an agent's commands in isolation, with bounded output and a deadline that nothing outlives."""
