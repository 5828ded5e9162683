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
