package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// process is one running child. Its goroutine starts it, stays until it has ended, and is waited for through ended.
type process struct {
	os    *os.Process
	ended chan struct{} // closed when the child has been reaped
	state string        // how it ended; set before ended is closed
}

// startProcess starts the program with its output appended to the file logPath. onEnd runs once the child has ended,
// before that is announced.
func startProcess(ctx context.Context, path string, args []string, dir, logPath string, onEnd func()) (*process, error) {
	output, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	// The child lives until it is ended, whatever becomes of the context of its start.
	command := exec.CommandContext(context.WithoutCancel(ctx), path, args...)
	command.Dir = dir
	command.Env = childEnvironment(dir)
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = childAttributes()
	p := &process{ended: make(chan struct{})}
	started := make(chan error)
	go p.run(command, output, started, onEnd)
	return p, <-started
}

// run keeps the thread that forks the child alive for as long as the child. The kernel sends the child its parent-death signal
// when that thread ends, not when the process does. The Go runtime ends a thread whose goroutine returns while locked to it. A
// thread that is locked here belongs to this goroutine alone. So the end of no other goroutine can end the thread, and with it
// the child.
func (p *process) run(command *exec.Cmd, output *os.File, started chan<- error, onEnd func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() { _ = output.Close() }() // nothing was written through it: the child has a copy
	if err := command.Start(); err != nil {
		started <- err
		return
	}
	p.os = command.Process
	started <- nil
	p.state = endState(command.Wait(), command.ProcessState)
	onEnd()
	close(p.ended)
}

func endState(err error, state *os.ProcessState) string {
	if state != nil {
		return state.String()
	}
	return fmt.Sprint(err)
}

// collectAt makes Go programs collect garbage four times less often. An API server then starts with a quarter less CPU time.
const collectAt = "400"

// childEnvironment excludes variables of the caller's shell: etcd takes ETCD_* variables for flags, and proxies must
// not stand between the components.
func childEnvironment(dir string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + dir, "GOGC=" + collectAt}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// signal sends a signal. A child that has ended is no error.
func (p *process) signal(signal syscall.Signal) error {
	if err := p.os.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// terminate asks the child to end, and kills it when ctx ends first. It returns when the child has ended.
func (p *process) terminate(ctx context.Context) error {
	// A stopped child would not see the first signal before it is continued.
	if err := errors.Join(p.signal(syscall.SIGTERM), p.signal(syscall.SIGCONT)); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return p.kill()
	}
}

// kill ends the child without warning and returns when it has ended.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}

// pause returns when every thread of the child stands still.
func (p *process) pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return waitStopped(p.os.Pid)
}
