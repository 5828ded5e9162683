-- name: submit
insert into runs (run, owner, header, question, words, mode, request, state, is_queued, queued_at)
values (%(run)s, %(owner)s, %(header)s, %(question)s, %(words)s, %(mode)s, %(request)s, 'waiting', true, now())

-- name: give_back
update runs set lease_until = null, holder = null, queued_at = '-infinity' where run = %(run)s and epoch = %(epoch)s

-- name: put_page
with kept as (
    insert into pages (digest, body) values (%(digest)s, %(body)s)
    on conflict (digest) do update set used = now() returning digest
)
insert into page_owners (digest, owner, bytes) select digest, %(owner)s, %(size)s from kept on conflict do nothing

-- name: claim
update runs set epoch = epoch + 1, losses = losses + (holder is not null)::int, holder = %(holder)s,
    state = 'running', stop_requested = false, lease_until = now() + make_interval(secs => %(lease)s)
where {mine} and state in ('waiting', 'running') and (lease_until is null or lease_until < now())
    and coalesce((select running from quotas where person = owner), 1000) > running_count(owner)
returning epoch, question, mode, request

-- name: open
select header, (select array_agg(line order by n) from facts where facts.run = runs.run) from runs where {readable}

-- name: summarise
select run, header, question, mode, {is_running}, bytes,
    (select line from facts where facts.run = runs.run order by n limit 1),
    (select line from facts where facts.run = runs.run order by n desc limit 1)
from runs where owner = %(owner)s and {condition} order by created desc, run desc limit %(limit)s

-- name: remove
delete from runs where {mine} and not (state = 'running' and coalesce(lease_until > now(), false)) returning run
