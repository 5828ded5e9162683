-- Runs with their facts, the page texts they rest on, and past answers.
create table people (
    id uuid primary key default gen_random_uuid(),
    name text not null,
    role text not null default 'user' check (role in ('user', 'administrator')),
    disabled boolean not null default false,
    created timestamptz not null default now()
);

create table runs (
    run text primary key,
    owner uuid not null references people on delete cascade,
    created timestamptz not null default now(),
    header text not null,                       -- the first line of the log, as in a file
    question text not null default '',
    mode text not null default '',
    request json,                               -- for a worker that has no fact yet to read it from
    state text not null check (state in ('waiting', 'running', 'finished', 'failed')),
    is_queued boolean not null default false,   -- workers go on with it when its writer is lost
    epoch bigint not null default 0,            -- the fencing token: each writer has a higher one
    holder text,
    lease_until timestamptz,
    queued_at timestamptz,
    stop_requested boolean not null default false,
    cancel_requested boolean not null default false,
    is_kept boolean not null default false,
    last int not null default 0,
    bytes bigint not null default 0
) with (fillfactor = 50);                       -- each append changes the row, in the same block
create index runs_by_owner on runs (owner, created desc);
create index runs_that_are_open on runs (queued_at) where is_queued and state in ('waiting', 'running');

create table facts (
    run text not null references runs on delete cascade,
    n int not null,
    epoch bigint not null,
    line text not null,         -- the line of the log, with its checksum
    primary key (run, n)
);

create table pages (
    digest text primary key,
    body bytea not null,        -- UTF-8, with the lone surrogates that text columns refuse
    used timestamptz not null default now()
);

create table run_pages (
    run text not null references runs on delete cascade,
    digest text not null,
    primary key (run, digest)
);
create index run_pages_by_digest on run_pages (digest);

create table history (
    owner uuid not null references people on delete cascade,
    id text not null,
    number bigint generated always as identity,
    entry text not null,                        -- JSON, as in a line of the file
    words text not null,                        -- question and answer, case-folded
    primary key (owner, number)
);
create index history_by_id on history (owner, id);

create table usage (
    owner uuid not null references people on delete cascade,
    day date not null,
    runs int not null default 0,
    tokens bigint not null default 0,
    cost double precision not null default 0,
    primary key (owner, day)
);
