"""Passes as OpenAI.

completions  of chats and of prompts, the models, and embeddings
responses    the Responses API; responses that were given before
shapes       what they share: requests, errors, events of a stream
chat_tasks   what a chat program asks about a conversation, answered without a search
"""
