"""Models behind the LLM port: any OpenAI-compatible endpoint, and a built-in one that needs no model."""
