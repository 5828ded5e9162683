"""State of a team server in Postgres: runs, page texts, past answers, people and jobs, for any number of machines.

`team.assembly` joins these with the rest. `database` has the connections, leases and notices, `migrations/` the schema, and
every other module one port.
"""
