-- Who else may read a run: named people, or everybody of the team.
create table shares (
    run text not null references runs on delete cascade,
    owner uuid not null references people on delete cascade,
    person uuid references people on delete cascade,    -- null stands for the team
    created timestamptz not null default now()
);
create unique index shares_by_run on shares (run, coalesce(person, '00000000-0000-0000-0000-000000000000'));
create index shares_by_person on shares (person);

alter table shares enable row level security;
create policy own_shares on shares using (owner = (select nexi_owner()));
create policy shares_with_me on shares for select using (
    person = (select nexi_owner()) or (person is null and (select nexi_owner()) is not null)
);
create policy shared_runs on runs for select using (exists (select from shares where shares.run = runs.run));
