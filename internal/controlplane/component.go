package controlplane

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a component may take to end by itself. An API server ends its watches in half a second; etcd
	// waits seven seconds for clients that stay, and loses nothing when it is killed.
	stopGrace = 3 * time.Second
	// readyPoll is how often a starting component is asked whether it is ready.
	readyPoll = 50 * time.Millisecond
	// bindAttempts is how often a component is started again on another port when another process took its port between choice
	// and use.
	bindAttempts = 5
	// logTail is how many lines of a component's log an error shows.
	logTail = 25
)

// Component is one program of the control plane. Its methods may be called from several goroutines.
type Component struct {
	name string
	dir  string // working directory, and the place of the log
	path string
	// arguments are asked for at each start: ports may change between starts.
	arguments func(context.Context) ([]string, error)
	// ready returns nil when the component serves.
	ready func(context.Context) error
	// onEnd runs after each end, however it came about, and perhaps twice. It may be nil.
	onEnd func()

	mu      sync.Mutex // guards process, and orders starts and ends
	process *process
}

// Name returns the program's name, which is also the name of its log file without ".log".
func (c *Component) Name() string { return c.name }

// LogPath returns the file that has what the program printed, over all its starts.
func (c *Component) LogPath() string { return filepath.Join(c.dir, c.name+".log") }

// Log returns the last lines of what the program printed.
func (c *Component) Log(lines int) string { return tail(c.LogPath(), lines) }

// PID returns the process id, or 0 if the component is not running.
func (c *Component) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() {
		return 0
	}
	return c.process.os.Pid
}

// Start starts the component, which must not be running, and returns when it is ready. On an error it is not running.
func (c *Component) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running() {
		return fmt.Errorf("%s is running already", c.name)
	}
	var err error
	for range bindAttempts {
		err = c.startOnce(ctx)
		if !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// Stop asks the component to end and returns when it has; after three seconds, or when ctx ends, it is killed.
func (c *Component) Stop(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	return c.wrap("stopping", c.process.terminate(ctx))
}

// Kill ends the component as `kill -9` does and returns when it has ended.
func (c *Component) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() {
		return nil
	}
	return c.wrap("killing", c.process.kill())
}

// Restart stops the component, if it runs, and starts it at the same address with the same data.
func (c *Component) Restart(ctx context.Context) error {
	if err := c.Stop(ctx); err != nil {
		return err
	}
	return c.Start(ctx)
}

// Roll stops the component, starts another program in its place, at the same address with the same data, and returns the
// stopped one.
func (c *Component) Roll(ctx context.Context, path string) (before string, err error) {
	if err := c.Stop(ctx); err != nil {
		return "", err
	}
	c.mu.Lock()
	before, c.path = c.path, path
	c.mu.Unlock()
	return before, c.Start(ctx)
}

// Pause makes the component stand still: connections stay open, and nothing is answered. It returns when every thread
// has stopped.
func (c *Component) Pause() error {
	return c.whileRunning("pausing", func(p *process) error { return p.pause() })
}

// Continue ends a Pause.
func (c *Component) Continue() error {
	return c.whileRunning("continuing", func(p *process) error { return p.signal(syscall.SIGCONT) })
}

// running is called with mu held.
func (c *Component) running() bool { return c.process != nil && !c.process.hasEnded() }

func (c *Component) whileRunning(doing string, do func(*process) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() {
		return fmt.Errorf("%s %s: it is not running", doing, c.name)
	}
	return c.wrap(doing, do(c.process))
}

func (c *Component) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", doing, c.name, err)
}
