package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// A process is a child that runs.
type process struct {
	cmd   *exec.Cmd
	input io.Closer
}

// begin starts a child, and reads the one value that it says first, if into is not nil.
func begin(ctx context.Context, name string, j job, into any) (*process, error) {
	cmd, err := measure.Command(ctx, name, j)
	if err != nil {
		return nil, err
	}
	reader, writer := io.Pipe()
	cmd.Stdin = io.MultiReader(cmd.Stdin, reader)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, input: writer}
	if into == nil {
		return p, nil
	}
	if err := json.NewDecoder(out).Decode(into); err != nil {
		return nil, fmt.Errorf("child %s did not start: %w", name, errors.Join(err, p.end()))
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// end has the child end by itself, and waits for it.
func (p *process) end() error {
	_ = p.input.Close() // never fails
	return p.cmd.Wait()
}
