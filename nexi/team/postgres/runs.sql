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

-- name: pick
-- a database that has just started waits for the writers that are still alive
with busy as (
    select owner, count(*) as n from runs
    where (state = 'running' and lease_until > now())
        or (is_queued and state in ('waiting', 'running') and queued_at > now())
    group by owner
)
update runs set queued_at = now() + make_interval(secs => %(reserved)s) where run = (
    select run from runs left join busy using (owner) left join quotas on person = owner
    where is_queued and state in ('waiting', 'running') and queued_at <= now() and (lease_until is null or lease_until < now())
        and (state = 'running' or not %(is_lost)s)
        and (state = 'waiting' or pg_postmaster_start_time() < now() - make_interval(secs => %(lease)s))
        and coalesce(quotas.running, 1000) > coalesce(busy.n, 0)
    order by state = 'running' desc, coalesce(busy.n, 0), queued_at, run
    limit 1 for update of runs skip locked
) returning run, owner

-- name: mark
with sized as (
    select run, created, sum(bytes) over (partition by owner order by created desc, run) as until_here,
        not is_kept and (state in ('finished', 'failed') or (lease_until is null and not is_queued)) as may_go
    from runs
), due as (
    select run from sized
    where may_go and (created < now() - make_interval(days => %(days)s) or until_here > %(bytes)s)
)
update runs set expires = case when run in (select run from due) then now() + make_interval(days => %(notice)s) end
where (expires is null) = (run in (select run from due))

-- name: remove_runs
delete from runs where expires < now() and not is_kept and not coalesce(lease_until > now(), false) returning 1

-- name: remove_pages
delete from pages where used < now() - interval '1 hour'
and not exists (select from run_pages where run_pages.digest = pages.digest)
