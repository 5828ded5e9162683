-- What a browser must bring back from its identity provider: state, nonce and code verifier of one login.
create table logins (
    digest text primary key,
    data text not null,
    expires timestamptz not null
);
