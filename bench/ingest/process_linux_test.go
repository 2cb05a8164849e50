package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// Children of these tests.
const (
	talkativeChild = "talkative"
	parentChild    = "parent"
	idleChild      = "idle"
)

// talkative prints more than its reader reads.
func talkative(_ context.Context, _ *json.Decoder, out io.Writer) error {
	_, err := fmt.Fprintf(out, `"%s"`+"\n", strings.Repeat("x", 1<<17))
	return err
}

// parent starts a process, says so, and waits.
func parent(ctx context.Context, _ *json.Decoder, out io.Writer) error {
	s, err := newChild(ctx, idleChild, nil)
	if err != nil {
		return err
	}
	var pid int
	if err := s.said.Decode(&pid); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, pid); err != nil {
		return err
	}
	<-s.ended
	return s.err
}

// idle says which process it is, and does nothing.
func idle(ctx context.Context, _ *json.Decoder, out io.Writer) error {
	if _, err := fmt.Fprintln(out, os.Getpid()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func TestAChildThatSaysMoreThanIsReadCanBeClosed(t *testing.T) {
	t.Parallel()
	s, err := newChild(t.Context(), talkativeChild, nil)
	require.NoError(t, err)
	closed := make(chan struct{})
	go func() {
		s.close()
		s.close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(5 * time.Minute):
		require.Fail(t, "whoever hands on what it says waits for a reader")
	}
}

func TestAProcessEndsWithItsParent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd, err := measure.Command(ctx, parentChild, nil)
	require.NoError(t, err)
	// All of them hold the other end open.
	held, end, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, held.Close()) })
	cmd.Stderr = end
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, end.Close())
	var pid int
	_, err = fmt.Fscan(out, &pid)
	require.NoError(t, err)
	defer func() { // where nothing else has ended it
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}()
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.NoError(t, held.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = io.Copy(io.Discard, held)
	require.NoError(t, err, "process %d has outlived its parent", pid)
}
