-- name: reserve
insert into rate_limits as r (key, full_at) values (%(key)s, now() + %(step)s * interval '1 second')
on conflict (key) do update set full_at = greatest(r.full_at, now()) + %(step)s * interval '1 second'
returning extract(epoch from full_at - now())::float8

-- name: give_back
update rate_limits set full_at = full_at - %(step)s * interval '1 second' where key = %(key)s

-- name: try
insert into rate_limits as r (key, full_at) values (%(key)s, now() + %(step)s * interval '1 second')
on conflict (key) do update set full_at = greatest(r.full_at, now()) + %(step)s * interval '1 second'
where greatest(r.full_at, now()) <= now() + %(slack)s * interval '1 second' returning 0

-- name: look
select extract(epoch from full_at - now())::float8 from rate_limits where key = %(key)s

-- name: read_suspension
-- now() is before the lock was had
select extract(epoch from clock_timestamp())::float8,
    (select state from suspensions where backend = %(backend)s and mark = %(mark)s)

-- name: write_suspension
insert into suspensions values (%(backend)s, %(mark)s, %(state)s)
on conflict (backend, mark) do update set state = excluded.state

-- name: add_slots
insert into model_slots (server, slot) select %(server)s, generate_series(1, %(most)s) on conflict do nothing

-- name: take_slot
update model_slots set holder = %(holder)s, until = now() + %(lease)s * interval '1 second'
where (server, slot) in (select server, slot from model_slots where server = %(server)s and slot <= %(most)s and until < now()
    order by slot limit 1 for update skip locked) returning slot

-- name: renew_slot
update model_slots set until = now() + %(lease)s * interval '1 second' where server = %(server)s and holder = %(holder)s

-- name: free_slot
update model_slots set holder = '', until = '-infinity' where server = %(server)s and holder = %(holder)s
