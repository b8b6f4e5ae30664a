"""Plays a trace through an engine and scores each turn."""
