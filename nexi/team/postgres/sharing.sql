-- name: replace
with mine as ({mine}), wanted as (select unnest(%(people)s::uuid[]) as person),
gone as (
    delete from {table} where {key} in (select {key} from mine)
    and not exists (select from wanted where wanted.person is not distinct from {table}.person)
),
added as (
    insert into {table} ({columns}, person) select {columns}, person from mine, wanted
    where person is distinct from owner on conflict do nothing
)
select {key} from mine

-- name: read_run
select shares.run is not null, shares.person from runs left join shares using (run)
where runs.run = %(run)s and runs.owner = %(owner)s order by shares.created

-- name: read_space
select shares.space is not null, shares.person from spaces left join space_shares shares on shares.space = spaces.id
where spaces.owner = %(owner)s and name = %(name)s order by shares.created, shares.person

-- name: shared_with_me
exists (
    select from shares where shares.run = runs.run and shares.owner <> %(owner)s
    and (shares.person = %(owner)s or shares.person is null)
)

-- name: offers
select shares.owner, answers.is_accepted
from (
    select owner, min(created) as created from knowledge_shares
    where owner <> %(owner)s and (person = %(owner)s or person is null) group by owner
) shares
left join knowledge_answers answers on answers.owner = shares.owner and answers.person = %(owner)s
order by shares.created, shares.owner limit %(limit)s

-- name: answer
insert into knowledge_answers (person, owner, is_accepted)
select distinct %(owner)s::uuid, owner, %(is_accepted)s from knowledge_shares where owner::text = %(sharer)s
    and owner <> %(owner)s and (person = %(owner)s or person is null)
on conflict (person, owner) do update set is_accepted = excluded.is_accepted, created = now() returning owner

-- name: runs
select run, owner, question, mode, state, created from runs where {shared_with_me} order by created desc limit %(limit)s
