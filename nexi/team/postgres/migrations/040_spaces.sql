-- Spaces: questions and files that belong together, and who else may read them and ask in them.
create table spaces (
    id bigint generated always as identity primary key,
    owner uuid not null references people on delete cascade,
    name text not null,
    settings text not null,    -- JSON: instructions and defaults
    created timestamptz not null default now(),
    unique (owner, name)
);
create table space_shares (
    space bigint not null references spaces on delete cascade,
    owner uuid not null references people on delete cascade,
    person uuid references people on delete cascade,    -- null stands for the team
    created timestamptz not null default now()
);
create unique index space_shares_by_space on space_shares (space, coalesce(person, '00000000-0000-0000-0000-000000000000'));
create index space_shares_by_person on space_shares (person);
create index space_shares_by_owner on space_shares (owner);

alter table spaces enable row level security;
create policy own_spaces on spaces using (owner = (select nexi_owner()));
alter table space_shares enable row level security;
create policy own_space_shares on space_shares using (owner = (select nexi_owner()));
create policy space_shares_with_me on space_shares for select using (
    person = (select nexi_owner()) or (person is null and (select nexi_owner()) is not null)
);
create policy shared_spaces on spaces for select using (exists (select from space_shares where space_shares.space = spaces.id));
