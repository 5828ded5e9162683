-- The models that one person may ask for; without a row, or with null, those of the team.
alter table quotas add column models text[];
