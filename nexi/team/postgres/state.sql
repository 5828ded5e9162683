-- name: add_space
insert into spaces (owner, name, settings) select %(owner)s, %(name)s, %(settings)s
where (select count(*) from spaces where owner = %(owner)s) < %(most)s on conflict do nothing returning name
