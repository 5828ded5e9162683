-- The second wall: a statement of one person sees and changes what is hers, even where it forgets to say so.
-- It runs as the role nexi_person, with her id in the setting nexi.owner; tables without policies are closed to that role.
create function nexi_owner() returns uuid stable language sql as
    $$ select nullif(current_setting('nexi.owner', true), '')::uuid $$;

create table page_owners (
    digest text not null references pages on delete cascade,
    owner uuid not null references people on delete cascade,
    primary key (digest, owner)
);
create index page_owners_by_owner on page_owners (owner);
insert into page_owners (digest, owner)
    select distinct digest, owner from run_pages join runs using (run) join pages using (digest);

alter table runs enable row level security;
create policy own_runs on runs using (owner = (select nexi_owner()));

alter table facts enable row level security;
create policy facts_of_visible_runs on facts for select using (exists (select from runs where runs.run = facts.run));

alter table run_pages enable row level security;
create policy pages_of_visible_runs on run_pages for select using (exists (select from runs where runs.run = run_pages.run));

alter table page_owners enable row level security;
create policy own_pages on page_owners for select using (owner = (select nexi_owner()));

alter table pages enable row level security;
create policy pages_that_were_read on pages for select using (
    exists (select from page_owners where page_owners.digest = pages.digest)
    or exists (select from run_pages where run_pages.digest = pages.digest)
);

alter table history enable row level security;
create policy own_history on history using (owner = (select nexi_owner()));

alter table usage enable row level security;
create policy own_usage on usage for select using (owner = (select nexi_owner()));

alter table quotas enable row level security;
create policy own_quotas on quotas for select using (person = (select nexi_owner()));
