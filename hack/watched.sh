#!/usr/bin/env bash
# Usage: hack/watched.sh WHAT COMMAND [ARGUMENT...]
# Runs a command whose output is of interest only if it fails. It says WHAT is done, and repeats it every three seconds with the time
# and the newest line of the command's output. If the command fails, all of its output is printed.
set -euo pipefail

what=$1
shift
folder=$(mktemp -d)
mkfifo "$folder/never"
# Opened in both directions, since the opening of one end waits for the other. Nothing is ever written: a read with a limit of time
# sleeps in this shell, and no process is left when the shell ends.
exec 9<>"$folder/never"
: >"$folder/output"

tell() {
	local line
	until read -rt 3 -u 9 _; do
		line=$(tail -n 1 "$folder/output" | cut -c 1-120)
		echo "$what: $SECONDS s${line:+, $line}"
	done
}
echo "$what" >&2
tell >&2 &
teller=$!
trap 'kill "$teller" 2>/dev/null || true; wait "$teller" 2>/dev/null || true; rm -rf "$folder"' EXIT

# In the foreground: a shell lets its background commands ignore Ctrl-C.
if ! "$@" >"$folder/output" 2>&1 9>&-; then
	cat "$folder/output" >&2
	echo "$what: failed after $SECONDS s" >&2
	exit 1
fi
