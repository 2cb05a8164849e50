package cookbook_test

import (
	"bufio"
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

	mu  sync.Mutex // protects log
	log strings.Builder
}

// startRecorder starts one that ends with the test at the latest, and returns when it records.
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
	})
	select {
	case <-p.ready:
	case <-p.ended:
		t.Fatalf("the recorder ended before it was recording: %v\n%s", p.err, p.text())
	case <-time.After(patience):
		t.Fatalf("the recorder was not recording after %s\n%s", patience, p.text())
	}
	return p
}

func (p *recorderProcess) read(logs io.Reader) {
	scanner := bufio.NewScanner(logs)
	scanner.Buffer(nil, 1<<20)
	recording := false
	for scanner.Scan() {
		p.mu.Lock()
		p.log.WriteString(scanner.Text() + "\n")
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

func (p *recorderProcess) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// terminate sends SIGTERM, and wants a clean end.
func (p *recorderProcess) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("the recorder did not end within %s\n%s", patience, p.text())
	}
	require.NoError(t, p.err, p.text())
}
