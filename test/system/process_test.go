package system_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is many times what anything here takes on a busy machine of two cores.
const patience = 2 * time.Minute

// recorderProcess is a recorder that runs as a process of its own.
type recorderProcess struct {
	cmd   *exec.Cmd
	ready chan struct{} // closed when it says that it is recording
	ended chan struct{} // closed when it has ended
	err   error         // after ended

	mu    sync.Mutex // protects lines
	lines []string
}

// startRecorder starts one that ends with the test at the latest.
func startRecorder(t *testing.T, args ...string) *recorderProcess {
	t.Helper()
	p := &recorderProcess{ready: make(chan struct{}), ended: make(chan struct{})}
	p.cmd = exec.Command(recorderBinary, append([]string{"run", "--log-format", "json"}, args...)...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	logs, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go p.read(logs)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("log of recorder %d:\n%s", p.cmd.Process.Pid, p.log())
		}
	})
	return p
}

func (p *recorderProcess) read(logs io.Reader) {
	scanner := bufio.NewScanner(logs)
	scanner.Buffer(nil, 1<<20)
	recording := false
	for scanner.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, scanner.Text())
		p.mu.Unlock()
		var line struct{ Msg string }
		if json.Unmarshal(scanner.Bytes(), &line) == nil && line.Msg == "recording" && !recording {
			recording = true
			close(p.ready)
		}
	}
	p.err = p.cmd.Wait()
	close(p.ended)
}

func (p *recorderProcess) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

func (p *recorderProcess) awaitReady(t *testing.T) {
	t.Helper()
	select {
	case <-p.ready:
	case <-p.ended:
		t.Fatalf("the recorder ended before it was recording: %v\n%s", p.err, p.log())
	case <-time.After(patience):
		t.Fatalf("the recorder was not recording after %s\n%s", patience, p.log())
	}
}

// terminate sends SIGTERM, and wants a clean end.
func (p *recorderProcess) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.awaitEnd(t)
	require.NoError(t, p.err, p.log())
}

// kill is kill -9.
func (p *recorderProcess) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	p.awaitEnd(t)
}

func (p *recorderProcess) awaitEnd(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("the recorder did not end within %s\n%s", patience, p.log())
	}
}

// eventually polls what can only be polled: another process's database.
func eventually(ctx context.Context, t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
