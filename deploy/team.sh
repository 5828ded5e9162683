#!/bin/sh
# Starts a team server with docker compose or podman-compose:  sh deploy/team.sh
# It makes deploy/.env with new secrets where there is none, builds and starts the containers, and adds the first
# administrator where there are no people yet. Started again, it brings the containers up to date and keeps everything.
set -eu
cd "$(dirname "$0")"

if docker compose version > /dev/null 2>&1; then
    compose="docker compose"
elif command -v podman-compose > /dev/null; then
    compose="podman-compose"
    # Older ones pass ${NAME:-} on as it stands.
    podman-compose --version 2> /dev/null | sed -n 's/^podman-compose[a-z]* version *//p' | {
        IFS=. read -r major minor _ && [ $((major * 1000 + minor)) -ge 1006 ]
    } || {
        echo "deploy/team.sh needs podman-compose 1.6 or newer: pipx install podman-compose" >&2
        exit 1
    }
else
    echo "deploy/team.sh needs docker compose or podman-compose." >&2
    exit 1
fi

make_secret() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

if [ ! -e .env ]; then
    (umask 077 && printf 'DATABASE_PASSWORD=%s\nSEARXNG_SECRET=%s\n' "$(make_secret)" "$(make_secret)" > .env)
fi

$compose -f team.yaml build server # the worker has the same image
$compose -f team.yaml up -d

echo "Waiting for the server ..." >&2
deadline=$(($(date +%s) + 180))
until people=$($compose -f team.yaml exec -T server nexi admin users 2> /dev/null); do
    if [ "$(date +%s)" -gt "$deadline" ]; then
        echo "The server does not start; '$compose -f deploy/team.yaml logs server' says why." >&2
        exit 1
    fi
    sleep 2
done

if [ -z "$people" ]; then
    $compose -f team.yaml exec -T server nexi admin users add "${1:-Administrator}" --administrator
fi
