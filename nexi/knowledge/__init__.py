"""Knowledge first: what was read is cut, stored, found again and judged before the web is asked.

Above sits the assembly; below are the ports of stores, embedders, models and the web. Nothing here knows which store or
model serves it. `agentic` drives, `judge` decides, `retrieval` finds, `indexing` keeps, `chunking` cuts.
"""
