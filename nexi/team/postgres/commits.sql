-- name: wanted
with wanted as (
    select * from json_to_recordset(%(batches)s::json) as w(run text, epoch bigint, last int, size int, state text,
        question text, words text, mode text, tokens bigint, cost float8, progress boolean)
)

-- name: locked
-- in one order, so that none deadlocks
, locked as (
    select runs.run from runs join wanted on runs.run = wanted.run and runs.epoch = wanted.epoch
    where runs.state = 'running' order by runs.run for update of runs
)

-- name: changed
, held as (
    update runs set last = wanted.last, losses = case when wanted.progress then 0 else losses end,
        bytes = bytes + wanted.size, state = coalesce(wanted.state, runs.state),
        question = coalesce(wanted.question, runs.question),
        words = coalesce(wanted.words, runs.words), mode = coalesce(wanted.mode, runs.mode),
        lease_until = case when wanted.state is null then lease_until end
    from wanted where runs.run = wanted.run and {is_mine} returning runs.run, runs.owner
)

-- name: created
, entered as (
    delete from admissions where ctid = (select ctid from admissions where owner = %(owner)s order by at limit 1 for update)
), held as (
    insert into runs (run, owner, header, question, words, mode, state, epoch, holder, lease_until, last, bytes)
    select run, %(owner)s, %(header)s, coalesce(question, ''), coalesce(words, ''),
        coalesce(mode, ''), coalesce(state, 'running'), epoch,
        %(holder)s, now() + make_interval(secs => %(lease)s), last, size from wanted
    returning run, owner
)

-- name: named
, named as (
    insert into run_pages (run, digest)
    select held.run, p.digest from held join json_to_recordset(%(pages)s::json) as p(run text, digest text) using (run)
    on conflict do nothing
)

-- name: spent
, spent as (
    insert into usage (owner, day, tokens, cost)
    select held.owner, (now() at time zone 'utc')::date, sum(tokens), sum(cost)
    from held join wanted using (run) group by held.owner order by held.owner
    on conflict (owner, day) do update set tokens = usage.tokens + excluded.tokens,
        cost = usage.cost + excluded.cost
)

-- name: facts
insert into facts (run, n, epoch, line)
select f.run, f.n, f.epoch, f.line from held
join json_to_recordset(%(facts)s::json) as f(run text, n int, epoch bigint, line text) using (run) returning run

-- name: count
select count(*) from facts where run = %(run)s and epoch = %(epoch)s and n = any(%(numbers)s)
