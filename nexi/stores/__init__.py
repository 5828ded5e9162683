"""Where knowledge is kept, and what turns text into vectors: one file for each way.

`nexi.app` chooses and builds; engines see the ports KnowledgeStore and Embedder. Nothing here knows how pages are cut into
chunks, how results are ranked further, or where a page came from.
"""
