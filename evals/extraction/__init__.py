"""How much of a page survives as text: annotated pages, documentation, and pages that hold an answer."""
