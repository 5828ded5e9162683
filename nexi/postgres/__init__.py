"""State of a team server in Postgres: runs, page texts, past answers, people and jobs, for any number of machines.

`app.team` joins these with the rest; a nexi for one person never loads them. `database` has the connections, leases and
notices, `migrations/` the schema, and every other module one port.
"""
