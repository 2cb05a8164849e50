#!/usr/bin/env bash
# Finds what the tests and the demo need besides Go, and installs it where it can: PostgreSQL's server binaries.
set -euo pipefail

have_postgres() {
	command -v initdb >/dev/null 2>&1 || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
		compgen -G '/usr/pgsql-*/bin/initdb' >/dev/null || compgen -G '/opt/homebrew/opt/postgresql*/bin/initdb' >/dev/null
}

if ! command -v go >/dev/null 2>&1; then
	echo "Go 1.26 or newer is needed: https://go.dev/dl/" >&2
	exit 1
fi
[ -n "${TEST_DATABASE_URL:-}" ] && exit 0
have_postgres && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing PostgreSQL's server binaries (apt-get install postgresql)"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	# The package would start a server of its own, which nobody asked for.
	mkdir -p /etc/postgresql-common
	[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
	apt-get install -y -qq postgresql >/dev/null
	exit 0
fi

echo "PostgreSQL's server binaries were not found on this machine; they will be fetched when they are needed." >&2
echo "If that is not possible here: install the package postgresql, or set TEST_DATABASE_URL." >&2
