-- What the machines of a team agree on. Lost at a crash of the database without harm, so two of the tables are unlogged.
create unlogged table rate_limits (
    key text primary key,
    full_at timestamptz not null                -- when the bucket of this key is full again
);

create unlogged table model_slots (
    server text not null,
    slot int not null,
    holder text not null default '',
    until timestamptz not null default '-infinity',
    primary key (server, slot)
);

create table suspensions (
    backend text not null,
    mark text not null,                         -- of the set-up: what a wrong key did ends with the key
    state json not null,
    primary key (backend, mark)
);

-- Questions that are asked again and again; a worker asks each one once when it is due.
create table schedules (
    id bigint generated always as identity primary key,
    owner uuid not null references people on delete cascade,
    question text not null,
    mode text not null,
    request json not null,
    every interval not null check (every >= interval '1 minute'),
    next_at timestamptz not null,
    last_run text not null default ''
);
create index schedules_by_time on schedules (next_at);
