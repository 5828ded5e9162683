-- Shared knowledge enters the answers of those who have accepted it; what was read before this version stays accepted.
create table knowledge_answers (
    person uuid not null references people on delete cascade,
    owner uuid not null references people on delete cascade,
    is_accepted boolean not null,    -- false: muted
    created timestamptz not null default now(),
    primary key (person, owner)
);
insert into knowledge_answers (person, owner, is_accepted)
    select distinct people.id, shares.owner, true
    from knowledge_shares shares join people on people.id <> shares.owner and (shares.person = people.id or shares.person is null);
alter table knowledge_answers enable row level security;
create policy own_knowledge_answers on knowledge_answers using (person = (select nexi_owner()));

create function accepted_owners() returns setof uuid stable language sql security definer set search_path from current as $$
    select distinct s.owner from knowledge_shares s
    join knowledge_answers a on a.owner = s.owner and a.person = nexi_owner() and a.is_accepted
    where s.person = nexi_owner() or s.person is null
$$;
create or replace function readable_collections() returns bigint[] stable language sql security definer set search_path from current as $$
    select coalesce(array_agg(id), '{}') from collections where nexi_owner() is not null and (
        owner is null or owner = nexi_owner() or owner = any(array(select accepted_owners()))
    )
$$;

-- Whose a collection is, as others read it: nothing for the team's, and for one's own.
create function name_of_sharer(wanted bigint) returns text stable language sql security definer set search_path from current as $$
    select coalesce((
        select people.name from collections join people on people.id = collections.owner
        where collections.id = wanted and people.id is distinct from nexi_owner()
    ), '')
$$;
