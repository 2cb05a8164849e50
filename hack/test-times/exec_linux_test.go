package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADaemonIsCountedByItself(t *testing.T) {
	// The daemon's parent ends at once. A process can be signalled until it is reaped.
	script := `daemon=$( (sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done' >/dev/null & echo $!) )
		while kill -0 "$daemon" 2>/dev/null; do :; done`
	out, err := program(t, "exec", "/bin/sh", "-c", script).Output()
	require.NoError(t, err)
	var cpu, daemons float64
	_, err = fmt.Sscanf(string(out), cpuLine, &cpu, &daemons)
	require.NoError(t, err, "%s", out)
	require.Greater(t, daemons, 0.01, "the daemon")
	require.Greater(t, cpu, 0.01, "the shell that waits")
}
