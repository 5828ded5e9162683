-- name: add
insert into spaces (owner, name, settings) select %(owner)s, %(name)s, %(settings)s
where (select count(*) from spaces where owner = %(owner)s) < %(most)s on conflict do nothing returning name

-- name: read_audience
select shares.space is not null, shares.person from spaces left join space_shares shares on shares.space = spaces.id
where spaces.owner = %(owner)s and name = %(name)s order by shares.created, shares.person
