package inside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/past"
	"github.com/kuberewind/kuberewind/internal/replay/signals"
)

// Exit codes for a program that does not start, like env(1) and nohup(1).
const (
	codeNotRun   = 126
	codeNotFound = 127
)

// killAfter is the time between SIGTERM and SIGKILL.
const killAfter = 10 * time.Second

// A Program is a program to run at a place.
type Program struct {
	Command    []string
	Intentions past.Intentions   // the file for its clients' writes
	Welcome    func(name string) // receives the name of the context before the program starts; may be nil
}

// Run runs a program at a place.
func Run(ctx context.Context, e *env.Env, aim *past.Aim, p Program) error {
	path, err := exec.LookPath(p.Command[0])
	if err != nil {
		return notStarted(err)
	}
	rec, err := e.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(runAt(ctx, e, rec, aim, p, path), rec.Close())
}

func runAt(ctx context.Context, e *env.Env, rec *env.Record, aim *past.Aim, p Program, path string) error {
	access, err := past.Running(ctx, e, rec)
	if err != nil {
		return err
	}
	if err := p.Intentions.Fits(e, aim, access != nil); err != nil {
		return err
	}
	place, err := aim.Find(ctx, e, rec, access)
	if err != nil {
		return err
	}
	end := func() error { return nil }
	if access == nil {
		if access, end, err = past.Own(ctx, rec, p.Intentions); err != nil {
			return err
		}
	}
	kubeconfig, err := place.Kubeconfig(*access)
	if err == nil {
		if p.Welcome != nil {
			p.Welcome(place.Context)
		}
		err = runWith(ctx, e, kubeconfig, path, p.Command)
	}
	return errors.Join(err, end())
}

// runWith runs a program with a kubeconfig in a temporary folder.
func runWith(ctx context.Context, e *env.Env, kubeconfig []byte, path string, command []string) (err error) {
	folder, err := os.MkdirTemp(e.Variable("XDG_RUNTIME_DIR"), "kuberewind-")
	if err != nil {
		return fmt.Errorf("make a folder for the kubeconfig: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	cmd := exec.CommandContext(ctx, path, command[1:]...)
	cmd.Args[0] = command[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.IOStreams.In, e.IOStreams.Out, e.IOStreams.ErrOut
	cmd.Env = append(e.Environ(), "KUBECONFIG="+file, "KUBECACHEDIR="+filepath.Join(folder, "cache"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = killAfter
	return run(ctx, cmd)
}

// run starts the program, passes signals to it, and returns its exit code.
func run(ctx context.Context, cmd *exec.Cmd) error {
	var starting sync.Mutex
	starting.Lock()
	signals.Take(ctx, func(caught os.Signal) {
		starting.Lock()
		defer starting.Unlock()
		if cmd.Process != nil && !fromTerminal(caught) {
			_ = cmd.Process.Signal(caught) // it fails only if the program has ended
		}
	})
	err := cmd.Start()
	starting.Unlock()
	if err != nil {
		return notStarted(err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &env.ExitError{Code: 128 + int(status.Signal())}
	}
	return &env.ExitError{Code: exit.ExitCode()}
}

func notStarted(err error) error {
	code := codeNotRun
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		code = codeNotFound
	}
	return &env.ExitError{Code: code, Err: err}
}
