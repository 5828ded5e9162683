"""Tables of values: documents by questions, each cell a value with the words it was taken from."""
