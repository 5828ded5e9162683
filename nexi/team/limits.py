"""Every limit of a team server, in one table. docs/team.md shows the same one to people; a test compares the two.

Quotas of a person are not here: an administrator sets them, and they are in the database.
"""

from __future__ import annotations

from nexi import events

# one person
MAX_OPEN_REQUESTS = 64  # at one server, streams among them
MAX_TOKENS = 50
MAX_TOKEN_DAYS = 3_660
MAX_SCHEDULES = 50
MAX_SCHEDULE_AHEAD_DAYS = 366
MAX_NAME_CHARS = 200
MAX_SHARED_LISTED = 200
MAX_ACCESS_LISTED = 50

# signing in
MAX_SESSION_DAYS = 7
MAX_SESSION_IDLE_HOURS = 12
MAX_LINK_MINUTES = 60
MAX_LOGIN_S = 600
MAX_CLOCK_SKEW_S = 300  # of the identity provider

# a server
MAX_PEOPLE_PER_ADDRESS = 20  # who share one, behind a proxy
MAX_OPEN_PEOPLE = 64  # more only while that many are busy
MAX_IDLE_PERSON_S = 60  # then what is open for somebody is closed
MAX_RUNS_LISTED = 100
MAX_REQUEST_S = 2.0  # a request waits no longer for a database that is away; runs do

# a worker
DEFAULT_WORKER_RUNS = 4
DEFAULT_DRAIN_S = 10
MAX_LOST_FACTOR = 3  # so that runs of several workers that are lost at once find room
MAX_LOSSES = events.MAX_LOSSES
MAX_RESERVED_S = 5.0
MAX_DUE_SCHEDULES = 20
DELETION_NOTICE_DAYS = 7

# the database
MAX_CONNECTIONS = 8
DEFAULT_LEASE_S = 4.0
MAX_READY_S = 2.0
MAX_POOL_WAIT_S = 5.0
MIN_REPLY_S = 1.0  # however little patience there is
MAX_REPLY_S = 10.0  # a connection may be dead without a word
MAX_RETRY_S = 30.0  # a restart of the database takes less
MAX_STATEMENT_S = 60.0  # a database that is slower than that is as good as none
MAX_DELETION_S = 600.0  # of a person with everything of hers
MAX_SLOT_S = 60.0
