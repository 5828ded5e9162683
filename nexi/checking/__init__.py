"""Whether a text says what its pages say.

`sentences` says what states something, `evidence` finds the passages that bear on it, `judge` has a model read them, `rules`
(over `values` and the rest) see what words can show, `answer` joins them for an answer under way, `recheck` for a document,
and `review` is what is shown. Nothing here knows a screen or a file.
"""
