package controlplane_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestKillingTheParentWithSignalNineLeavesNoProcess(t *testing.T) {
	temporary := t.TempDir()
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), victimVariable+"=1", "TMPDIR="+temporary)
	parent.Stderr = os.Stderr
	output, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line, err := bufio.NewReader(output).ReadBytes('\n')
	require.NoError(t, err)
	var told victim
	require.NoError(t, json.Unmarshal(line, &told))
	require.Len(t, told.PIDs, 2)

	var ends []unix.PollFd
	for _, pid := range told.PIDs {
		descriptor, err := unix.PidfdOpen(pid, 0)
		require.NoError(t, err)
		defer func() { require.NoError(t, unix.Close(descriptor)) }()
		ends = append(ends, unix.PollFd{Fd: int32(descriptor), Events: unix.POLLIN})
	}
	ready, err := unix.Poll(ends, 0)
	require.NoError(t, err)
	require.Zero(t, ready, "both live while the parent lives")

	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	for i := range ends {
		ready, err := unix.Poll(ends[i:i+1], int(patience.Milliseconds()))
		require.NoError(t, err)
		require.Equal(t, 1, ready, "process %d has outlived its parent", told.PIDs[i])
	}
}
