"""One run: preflight, gate, replay, summary, and the journal that is the truth."""
