-- name: advance
update schedules set last_run = coalesce(%s, last_run), next_at = next_at + every *
    (1 + floor(extract(epoch from now() - next_at) / extract(epoch from every)))
where id = %s

-- name: add
insert into schedules (owner, question, mode, request, every, next_at)
select %(owner)s, %(question)s, %(mode)s, %(request)s, %(every)s, coalesce(%(first)s, now())
where (select count(*) from schedules where owner = %(owner)s) < %(most)s
returning id, owner::text, question, mode, every, next_at, last_run

-- name: due
select schedules.id, owner, question, mode, request from schedules join people on people.id = owner
where next_at <= now() and not disabled order by next_at limit %s for update of schedules skip locked
