#!/usr/bin/env bash
# Usage: hack/watched.sh WHAT COMMAND [ARGUMENT...]
# Runs a command and shows its output only if the command fails. It prints WHAT, and repeats it every three seconds with the time
# and the newest line of output.
set -euo pipefail

what=$1
shift
folder=$(mktemp -d)
mkfifo "$folder/never"
# The pipe is opened for reading and writing, because opening one end alone waits for the other. The script writes nothing to it. A read
# with a timeout sleeps inside this shell, so no process remains when the shell ends.
exec 9<>"$folder/never"
: >"$folder/output"

report() {
	local line
	until read -rt 3 -u 9 _; do
		line=$(tail -n 1 "$folder/output" | cut -c 1-120)
		echo "$what: $SECONDS s${line:+, $line}"
	done
}
echo "$what" >&2
report >&2 &
reporter=$!
trap 'kill "$reporter" 2>/dev/null || true; wait "$reporter" 2>/dev/null || true; rm -rf "$folder"' EXIT

# The command runs in the foreground, because background commands of a shell ignore Ctrl-C.
if ! "$@" >"$folder/output" 2>&1 9>&-; then
	cat "$folder/output" >&2
	echo "$what: failed after $SECONDS s" >&2
	exit 1
fi
