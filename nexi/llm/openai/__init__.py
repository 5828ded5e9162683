"""Any OpenAI-compatible endpoint behind the LLM port."""
