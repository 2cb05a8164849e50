package recordertest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Patience bounds each wait. It is much longer than any step takes on a busy machine with two cores.
const Patience = 5 * time.Minute

// metricsTimeout bounds a request for metrics. Tests repeat these requests, and a stopped recorder never answers.
const metricsTimeout = 500 * time.Millisecond

// Process is a recorder that runs as a separate process.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	err   error         // how the process ended; set before ended is closed

	mu    sync.Mutex // protects the fields below
	lines []string
	grown chan struct{} // closed and replaced with each line
}

// Start starts `recorder run` with arguments. The process ends with the test at the latest.
func Start(t testing.TB, args ...string) *Process {
	t.Helper()
	p, err := Run(args...)
	if err != nil {
		t.Fatalf("start a recorder: %v", err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
		if t.Failed() {
			t.Logf("log of recorder %d, which ended with %s:\n%s", p.PID(), p.cmd.ProcessState, p.Log())
		}
	})
	return p
}

// Run is Start for callers that end the process themselves.
func Run(args ...string) (*Process, error) {
	p := &Process{ended: make(chan struct{}), grown: make(chan struct{})}
	p.cmd = exec.Command(Program("recorder"), append([]string{"run", "--log-format", "json"}, args...)...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	logs, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(logs)
	return p, nil
}

func (p *Process) read(logs io.Reader) {
	scanner := bufio.NewScanner(logs)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, scanner.Text())
		close(p.grown)
		p.grown = make(chan struct{})
		p.mu.Unlock()
	}
	p.err = p.cmd.Wait()
	close(p.ended)
}

// PID returns the pid of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns the log of the process so far, one JSON object in each line.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// find returns the first line with all of the words, or "". The channel is closed when there are more lines.
func (p *Process) find(words []string) (line string, grown <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if containsAll(line, words) {
			return line, p.grown
		}
	}
	return "", p.grown
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// Await waits for a line of the log with all of the words, and returns the first one.
func (p *Process) Await(t testing.TB, words ...string) string {
	t.Helper()
	deadline := time.After(Patience)
	for {
		line, grown := p.find(words)
		if line != "" {
			return line
		}
		select {
		case <-grown:
		case <-p.ended:
			if line, _ := p.find(words); line != "" {
				return line
			}
			t.Fatalf("the recorder ended (%v) and did not log %q\n%s", p.err, words, p.Log())
		case <-deadline:
			t.Fatalf("the recorder did not log %q within %s\n%s", words, Patience, p.Log())
		}
	}
}

// AwaitReady waits until the recorder logs "recording".
func (p *Process) AwaitReady(t testing.TB) {
	t.Helper()
	p.Await(t, `"msg":"recording"`)
}

// Signal sends a signal. It returns an error if the process has ended.
func (p *Process) Signal(signal syscall.Signal) error { return p.cmd.Process.Signal(signal) }

func (p *Process) mustSignal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := p.Signal(signal); err != nil {
		t.Fatalf("signal %s to recorder %d: %v", signal, p.PID(), err)
	}
}

// Terminate sends SIGTERM. It fails the test unless the process ends with 0.
func (p *Process) Terminate(t testing.TB) {
	t.Helper()
	p.mustSignal(t, syscall.SIGTERM)
	if code := p.AwaitEnd(t); code != 0 {
		t.Fatalf("the recorder ended with %d\n%s", code, p.Log())
	}
}

// Kill sends SIGKILL and waits for the end.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	p.mustSignal(t, syscall.SIGKILL)
	p.AwaitEnd(t)
}

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// ExitCode returns the exit code of a process that has ended, or -1 if a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// AwaitEnd waits until the process has ended, and returns the exit code.
func (p *Process) AwaitEnd(t testing.TB) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(Patience):
		t.Fatalf("the recorder did not end within %s\n%s", Patience, p.Log())
	}
	return p.ExitCode()
}

// Metrics returns the values of the recorder's metrics, by name with labels. It returns nil if the recorder does not answer.
func (p *Process) Metrics() map[string]float64 {
	answer := p.ask("/metrics", metricsTimeout)
	if answer == nil {
		return nil
	}
	defer func() { _ = answer.Body.Close() }() // everything was read
	return ParseMetrics(answer.Body)
}

// Get returns the answer of the recorder's HTTP server, or "" if it does not answer.
func (p *Process) Get(path string) string {
	answer := p.ask(path, Patience)
	if answer == nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return ""
	}
	return string(text)
}

func (p *Process) ask(path string, timeout time.Duration) *http.Response {
	line, _ := p.find([]string{"serving /metrics"})
	var listening struct{ Address string }
	if json.Unmarshal([]byte(line), &listening) != nil {
		return nil
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: timeout}
	answer, err := client.Get("http://" + listening.Address + path)
	if err != nil {
		return nil
	}
	return answer
}

// ParseMetrics returns the values of metrics in Prometheus's text format, by name with labels. It returns nil after a read error.
func ParseMetrics(served io.Reader) map[string]float64 {
	metrics := map[string]float64{}
	lines := bufio.NewScanner(served)
	for lines.Scan() {
		last := strings.LastIndexByte(lines.Text(), ' ')
		if value, err := strconv.ParseFloat(lines.Text()[last+1:], 64); err == nil && last > 0 {
			metrics[lines.Text()[:last]] = value
		}
	}
	if lines.Err() != nil {
		return nil
	}
	return metrics
}

// Eventually polls a condition until it is true. It is for conditions without a signal: those of another process and its database.
func Eventually(ctx context.Context, t testing.TB, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("not true within %s: %s", Patience, what)
		}
	}
}
