-- How people prove who they are, what they may use, and what was done.
create table identities (
    issuer text not null,
    subject text not null,                      -- never the e-mail address, which may change hands
    person uuid not null references people on delete cascade,
    email text not null default '',
    primary key (issuer, subject)
);

create table tokens (
    id uuid primary key default gen_random_uuid(),
    person uuid not null references people on delete cascade,
    digest text not null unique,                -- SHA-256 of 32 random bytes, which needs no slow hash
    name text not null,
    scopes text[] not null,
    created timestamptz not null default now(),
    expires timestamptz,
    last_used timestamptz
);

create table sessions (
    digest text primary key,
    person uuid not null references people on delete cascade,
    created timestamptz not null default now(),
    used timestamptz not null default now()
);

create table sign_in_links (
    digest text primary key,
    person uuid not null references people on delete cascade,
    expires timestamptz not null
);

create table quotas (
    person uuid primary key references people on delete cascade,
    runs_per_day int,
    tokens_per_day bigint,
    cost_per_day double precision,
    running int
);

create table audit (
    number bigint generated always as identity primary key,
    at timestamptz not null default now(),
    person uuid,                                -- kept when the person is deleted
    action text not null,
    subject text not null default '',
    address text not null default ''
);
create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'the audit log is only added to';
end $$;
create trigger audit_is_only_added_to before update or delete or truncate on audit
    for each statement execute function refuse_change();
