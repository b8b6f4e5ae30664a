"""Trace packs: the row format, its validation, and recording."""
