-- name: change
update people set role = coalesce(%(role)s::text, role), disabled = coalesce(%(disabled)s::bool, disabled)
where id = %(person)s

-- name: find_texts
select digest from page_owners where owner = %(person)s
union select digest from run_pages join runs using (run) where owner = %(person)s

-- name: remove_texts
delete from pages where digest = any(%(digests)s)
and not exists (select from page_owners where page_owners.digest = pages.digest)
and not exists (select from run_pages where run_pages.digest = pages.digest)

-- name: add_token
insert into tokens (person, digest, name, scopes, expires)
values (%(person)s, %(digest)s, %(name)s, %(scopes)s, now() + make_interval(secs => %(seconds)s))

-- name: find_by_token
select people.id, people.name, people.role, tokens.scopes, tokens.id,
    coalesce(last_used < now() - interval '1 minute', true)
from tokens join people on people.id = tokens.person
where digest = %(digest)s and not disabled and coalesce(expires > now(), true)

-- name: find_by_session
select people.id, people.name, people.role, used < now() - interval '1 minute'
from sessions join people on people.id = sessions.person
where digest = %(digest)s and not disabled and used > now() - make_interval(hours => %(idle)s)
    and sessions.created > now() - make_interval(days => %(days)s)

-- name: add_with_role
insert into people (name, role)
select %(name)s, case when exists (select from people where role = 'administrator') then 'user' else 'administrator' end
returning id

-- name: usage
select coalesce(max(runs), 0), coalesce(max(tokens), 0), coalesce(max(cost), 0), running_count(%(person)s),
    stored_bytes(%(person)s)
from usage where owner = %(person)s and day = (now() at time zone 'utc')::date

-- name: access
select at, action, subject, address from audit where person = %(person)s and action = any(%(actions)s)
order by number desc limit %(count)s

-- name: runs
select run, people.name, state, mode, runs.created from runs join people on people.id = owner
order by runs.created desc limit %(count)s

-- name: export person
select id, name, role, disabled, created from people where id = %(person)s

-- name: export identities
select issuer, subject, email from identities where person = %(person)s

-- name: export tokens
select id, name, scopes, created, expires, last_used from tokens where person = %(person)s

-- name: export sessions
select created, used from sessions where person = %(person)s order by created

-- name: export quotas
select runs_per_day, tokens_per_day, cost_per_day, running, storage_bytes, models from quotas where person = %(person)s

-- name: export shares
select run, person, created from shares where owner = %(person)s order by created

-- name: export knowledge_shares
select person, created from knowledge_shares where owner = %(person)s order by created

-- name: export knowledge_answers
select owner, is_accepted, created from knowledge_answers where person = %(person)s order by created

-- name: export spaces
select name, settings, created from spaces where owner = %(person)s order by name

-- name: export space_shares
select name, person, space_shares.created from space_shares join spaces on spaces.id = space
where space_shares.owner = %(person)s order by name, space_shares.created

-- name: export schedules
select question, mode, every, next_at from schedules where owner = %(person)s order by id

-- name: export usage
select day, runs, tokens, cost from usage where owner = %(person)s order by day

-- name: export audit
select at, action, subject, address from audit where person = %(person)s order by number

-- name: lines
select line from facts where run = %(run)s order by n

-- name: texts
select digest, body from page_owners join pages using (digest) where owner = %(person)s order by digest

-- name: sources
select s.url, s.title, s.fetched_at,
    (select coalesce(array_agg(c.content order by c.id), '{}') from chunks c where c.body = s.body)
from sources s join collections k on k.id = s.collection where k.owner = %(person)s order by s.id
