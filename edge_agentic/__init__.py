"""edge-agentic: benchmark LLM agents on Jetson-class devices (gate, replay, measure)."""
