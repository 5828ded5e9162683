-- What was done with the account of one person, however long the audit log is.
create index audit_by_person on audit (person, number);
