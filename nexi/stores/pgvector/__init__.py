"""Knowledge in the Postgres of a team server: `store` is the port, `words` the search by words."""
