#!/usr/bin/env bash
# Finds the programs that the tests and the demo need in addition to Go. As root on Debian it installs missing ones.
#
#   (no argument)  PostgreSQL's server binaries, psql, and PgBouncer for one test
#   demo           PostgreSQL's server binaries and psql
#   server         PostgreSQL's server binaries
#   clients        all of the first line, and tmux: the tests run k9s in it
#   web            only Chromium and Node: the tests run the page in Chromium, and Node drives it
set -euo pipefail

# have_postgres finds a program of PostgreSQL where the recorder looks for it (binaryPlaces of internal/embedded).
have_postgres() {
	command -v "$1" >/dev/null 2>&1 && return
	[ -n "${KUBEREWIND_POSTGRES_BIN:-}" ] && [ -x "$KUBEREWIND_POSTGRES_BIN/$1" ] && return
	for place in '/usr/lib/postgresql/*/bin' '/usr/pgsql-*/bin' '/usr/libexec/postgresql*' /usr/local/pgsql/bin \
		'/opt/homebrew/opt/postgresql*/bin' '/usr/local/opt/postgresql*/bin' '/home/linuxbrew/.linuxbrew/opt/postgresql*/bin' \
		'/opt/local/lib/postgresql*/bin' '/Applications/Postgres.app/Contents/Versions/*/bin'; do
		compgen -G "$place/$1" >/dev/null && return
	done
	return 1
}

have_server() { [ -n "${TEST_DATABASE_URL:-}" ] || have_postgres initdb; }

have_client() { [ "${1:-}" = server ] || have_postgres psql; }

# have_pooler also looks in /usr/sbin: Debian installs PgBouncer there, and an ordinary user's PATH does not have it.
have_pooler() { [ -n "${1:-}" ] || command -v pgbouncer >/dev/null 2>&1 || [ -x /usr/sbin/pgbouncer ]; }

# install_package NAME PACKAGE: as root on Debian. The package must not start its service.
install_package() {
	local policy=/usr/sbin/policy-rc.d
	export DEBIAN_FRONTEND=noninteractive
	if [ ! -e "$policy" ]; then
		trap "rm -f $policy" EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod +x "$policy"
	fi
	"$(dirname "$0")/watched.sh" "updating the list of packages" apt-get update &&
		"$(dirname "$0")/watched.sh" "installing $1" apt-get install -y "$2"
}

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

if ! command -v go >/dev/null 2>&1; then
	echo "Go 1.26 or newer is needed: https://go.dev/dl/" >&2
	exit 1
fi

# One test needs PgBouncer, and prints why it is skipped without it. So a missing PgBouncer is no error here.
if ! have_pooler "$@"; then
	if can_install; then
		echo "installing PgBouncer (apt-get install pgbouncer)"
		install_package PgBouncer pgbouncer || echo "PgBouncer could not be installed: the test of the election through a pooler needs it." >&2
	else
		echo "PgBouncer was not found, and only root can install it on Debian: the test of the election through a pooler is skipped." >&2
		echo "To run it, install the package pgbouncer." >&2
	fi
fi
if [ "${1:-}" = clients ] && ! command -v tmux >/dev/null 2>&1; then
	if ! can_install; then
		echo "tmux was not found on PATH, and only root can install it on Debian: install the package tmux." >&2
		exit 1
	fi
	echo "installing tmux (apt-get install tmux)"
	install_package tmux tmux
fi
# needs NAME PROGRAM PACKAGE: installs the package if the program is missing, or says what to do.
needs() {
	command -v "$2" >/dev/null 2>&1 && return
	if ! can_install; then
		echo "$1 was not found on PATH, and only root can install it on Debian: install the package $3, or set SKIP_WEB=1." >&2
		exit 1
	fi
	echo "installing $1 (apt-get install $3)"
	install_package "$1" "$3"
}

if [ "${1:-}" = web ]; then
	needs Chromium chromium chromium
	needs npm npm npm # The package brings Node.
	exit 0
fi
have_server && have_client "$@" && exit 0

if can_install; then
	echo "installing PostgreSQL's server binaries and psql (apt-get install postgresql)"
	# Without this file, the package would create a database cluster, which nothing here uses.
	mkdir -p /etc/postgresql-common
	[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
	install_package PostgreSQL postgresql
	exit 0
fi

if ! have_client "$@"; then
	echo "psql was not found on this machine: install PostgreSQL's client (Debian, Ubuntu: apt-get install postgresql-client, or postgresql," >&2
	echo "which has the server too; Fedora: dnf install postgresql; macOS: brew install postgresql), or add the folder of an installed psql to PATH." >&2
	exit 1
fi
echo "PostgreSQL's server binaries were not found on this machine; the tests and the demo download them." >&2
echo "If this machine cannot download them, install the package postgresql, or set TEST_DATABASE_URL." >&2
