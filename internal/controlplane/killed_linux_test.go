package controlplane_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestSIGKILLOfTheParentEndsAllProcesses(t *testing.T) {
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
	require.Zero(t, poll(t, ends, 0), "both live while the parent lives")

	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	for i := range ends {
		require.Equal(t, 1, poll(t, ends[i:i+1], patience), "process %d has outlived its parent", told.PIDs[i])
	}
}

// poll goes on where a signal interrupts it: Go sends its own threads some.
func poll(t *testing.T, descriptors []unix.PollFd, patience time.Duration) (ready int) {
	t.Helper()
	until := time.Now().Add(patience)
	for {
		ready, err := unix.Poll(descriptors, int(max(0, time.Until(until)).Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			require.NoError(t, err)
			return ready
		}
	}
}
