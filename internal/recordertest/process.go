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

// Patience is many times what anything takes on a busy machine of two cores.
const Patience = 5 * time.Minute

// metricsTimeout is how long a recorder may take to tell its metrics, which are asked for again and again: one that is stopped never does.
const metricsTimeout = 500 * time.Millisecond

// Process is a recorder that runs as a process of its own.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
	err   error         // how; set before ended is closed

	mu    sync.Mutex // protects what follows
	lines []string
	news  chan struct{} // closed and replaced with each line
}

// Start starts a recorder with more arguments than `run`. It ends with the test at the latest.
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

// Run is Start for those who end the process themselves.
func Run(args ...string) (*Process, error) {
	p := &Process{ended: make(chan struct{}), news: make(chan struct{})}
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
		close(p.news)
		p.news = make(chan struct{})
		p.mu.Unlock()
	}
	p.err = p.cmd.Wait()
	close(p.ended)
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is what the process has logged so far, a JSON object a line.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// find is the first line with all of the words, or "", and what is closed when there are more lines.
func (p *Process) find(words []string) (line string, news <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if containsAll(line, words) {
			return line, p.news
		}
	}
	return "", p.news
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// Await returns the first line of the log with all of the words, once it is there.
func (p *Process) Await(t testing.TB, words ...string) string {
	t.Helper()
	deadline := time.After(Patience)
	for {
		line, news := p.find(words)
		if line != "" {
			return line
		}
		select {
		case <-news:
		case <-p.ended:
			if line, _ := p.find(words); line != "" {
				return line
			}
			t.Fatalf("the recorder ended (%v) and never said %q\n%s", p.err, words, p.Log())
		case <-deadline:
			t.Fatalf("the recorder did not say %q within %s\n%s", words, Patience, p.Log())
		}
	}
}

// AwaitReady returns when the recorder says that it is recording.
func (p *Process) AwaitReady(t testing.TB) {
	t.Helper()
	p.Await(t, `"msg":"recording"`)
}

// Signal sends one. It fails if the process has ended.
func (p *Process) Signal(signal syscall.Signal) error { return p.cmd.Process.Signal(signal) }

func (p *Process) mustSignal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := p.Signal(signal); err != nil {
		t.Fatalf("signal %s to recorder %d: %v", signal, p.PID(), err)
	}
}

// Terminate sends SIGTERM, and wants a clean end.
func (p *Process) Terminate(t testing.TB) {
	t.Helper()
	p.mustSignal(t, syscall.SIGTERM)
	if code := p.AwaitEnd(t); code != 0 {
		t.Fatalf("the recorder ended with %d\n%s", code, p.Log())
	}
}

// Kill is kill -9.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	p.mustSignal(t, syscall.SIGKILL)
	p.AwaitEnd(t)
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// ExitCode is that of a process that has ended: -1 if a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// AwaitEnd returns the exit code when the process has ended.
func (p *Process) AwaitEnd(t testing.TB) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(Patience):
		t.Fatalf("the recorder did not end within %s\n%s", Patience, p.Log())
	}
	return p.ExitCode()
}

// Metrics asks a recorder that listens, and returns what each of its metrics says, by name and labels as they are written; nil if it
// does not answer.
func (p *Process) Metrics() map[string]float64 {
	answer := p.ask("/metrics", metricsTimeout)
	if answer == nil {
		return nil
	}
	defer func() { _ = answer.Body.Close() }() // what was read is what counts
	return ParseMetrics(answer.Body)
}

// Get is what a recorder that listens answers, "" if it does not.
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

// ParseMetrics gives the values of what is served, by the metrics' names with their labels; nil where it could not be read.
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

// Eventually polls what can only be polled: another process, and its database.
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
			t.Fatalf("not within %s: %s", Patience, what)
		}
	}
}
