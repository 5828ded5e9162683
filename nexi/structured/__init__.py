"""JSON that models write: read it, check it against a schema, and read rankings out of it."""
