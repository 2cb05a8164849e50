package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// patience bounds each wait. It is much longer than any step takes on a busy machine with two cores.
const patience = 5 * time.Minute

// lifelineVariable says that descriptor 3 is a pipe from the starter. The program must end when that pipe closes.
const lifelineVariable = "KUBEREWIND_TEST_LIFELINE"

// process is one run of the program in the background.
type process struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed when it has ended

	mu    sync.Mutex // protects the fields below
	text  bytes.Buffer
	grown chan struct{} // closed and replaced when text grows
}

func startProcess(program, dir string, environment, args []string) (*process, error) {
	end, lifeline, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(program, args...), gone: make(chan struct{}), grown: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, append(environment, lifelineVariable+"=3")
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = p, p, []*os.File{end}
	err = p.cmd.Start()
	_ = end.Close() // the child has its own copy
	if err != nil {
		return nil, errors.Join(err, lifeline.Close())
	}
	go func() {
		_ = p.cmd.Wait() // ProcessState says more
		_ = lifeline.Close()
		close(p.gone)
	}()
	return p, nil
}

// followParent makes the program exit when its starter does.
func followParent() {
	if os.Getenv(lifelineVariable) == "" {
		return
	}
	syscall.CloseOnExec(3)
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(3, "lifeline"))
		os.Exit(1)
	}()
}

// Write appends output of the program, from stdout or stderr.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.grown)
	p.grown = make(chan struct{})
	return p.text.Write(text)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// await returns when the output of the program matches the pattern.
func (p *process) await(pattern string) error {
	wanted, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return err
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		p.mu.Lock()
		found, grown := wanted.Match(p.text.Bytes()), p.grown
		p.mu.Unlock()
		if found {
			return nil
		}
		select {
		case <-grown:
		case <-p.gone:
			return fmt.Errorf("it ended and did not write %s; it wrote:\n%s", pattern, p.output())
		case <-limit.C:
			return fmt.Errorf("it did not write %s within %s; it wrote:\n%s", pattern, patience, p.output())
		}
	}
}

var signals = map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}

func (p *process) signal(name string) error {
	s, ok := signals[name]
	if !ok {
		return fmt.Errorf("no signal %q", name)
	}
	return p.cmd.Process.Signal(s)
}

// ended waits until the program ends. It returns the exit code as a shell does: 128 plus the number of the signal that ended it.
func (p *process) ended() (int, error) {
	select {
	case <-p.gone:
	case <-time.After(patience):
		return 0, fmt.Errorf("it did not end within %s; it wrote:\n%s", patience, p.output())
	}
	if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.gone
}
