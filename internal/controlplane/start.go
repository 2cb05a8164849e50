package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// errPortTaken says that a component could not listen because another process has its port.
var errPortTaken = errors.New("the port was taken by another process")

// startOnce is called with mu held.
func (c *Component) startOnce(ctx context.Context) error {
	logged := logSize(c.LogPath())
	if err := c.spawn(ctx); err != nil {
		return c.wrap("starting", err)
	}
	err := c.waitReady(ctx)
	if err == nil {
		return nil
	}
	if portTaken(c.LogPath(), logged) {
		err = fmt.Errorf("%w: %w", errPortTaken, err)
	}
	err = errors.Join(err, c.process.kill())
	// ready may have run while the process ended, and have undone what its end did.
	c.ended()
	return err
}

func (c *Component) spawn(ctx context.Context) error {
	arguments, err := c.arguments(ctx)
	if err != nil {
		return err
	}
	process, err := startProcess(ctx, c.path, arguments, c.dir, c.LogPath(), c.ended)
	if err != nil {
		return err
	}
	c.process = process
	return nil
}

func (c *Component) ended() {
	if c.onEnd != nil {
		c.onEnd()
	}
}

// waitReady asks until the component is ready, has ended, or ctx ends. It is called with mu held.
func (c *Component) waitReady(ctx context.Context) error {
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		err := c.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-c.process.ended:
			return fmt.Errorf("%s ended before it was ready: %s; its log ends:\n%s", c.name, c.process.state, c.Log(logTail))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w (last answer: %w); its log ends:\n%s", c.name, context.Cause(ctx), err, c.Log(logTail))
		}
	}
}

func logSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// portTaken reports whether the part of the log from the offset on speaks of a port in use.
func portTaken(path string, from int64) bool {
	text, err := readFrom(path, from)
	return err == nil && strings.Contains(text, "address already in use")
}

// tail returns the last lines of a file, of its last 64 KiB at most.
func tail(path string, lines int) string {
	text, err := readFrom(path, max(0, logSize(path)-64<<10))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// readFrom returns what the file has from the offset on, 1 MiB at most.
func readFrom(path string, offset int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.NewSectionReader(file, offset, 1<<20))
	return string(text), errors.Join(err, file.Close())
}
