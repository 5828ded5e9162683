"""Passes as OpenAI.

chat        chat completions and the list of models
responses   the Responses API; responses that were given before
legacy      completions of a prompt, and embeddings
shapes      what they share: requests, errors, events of a stream
chat_tasks  what a chat program asks about a conversation, answered without a search
"""
