"""The built-in model that quotes pages and needs no model server."""
