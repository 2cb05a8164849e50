package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
)

// A Running is a child that runs until it is ended.
type Running struct {
	cmd   *exec.Cmd
	input io.Closer
}

// Begin starts a child that runs until its input ends. It reads the one value that the child says first, if into is not nil.
func Begin(ctx context.Context, name string, needs, into any) (*Running, error) {
	cmd, err := Command(ctx, name, needs)
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
	r := &Running{cmd: cmd, input: writer}
	if into == nil {
		return r, nil
	}
	if err := json.NewDecoder(out).Decode(into); err != nil {
		return nil, fmt.Errorf("child %s did not start: %w", name, errors.Join(err, r.End()))
	}
	return r, nil
}

// PID is the number of its process.
func (r *Running) PID() int { return r.cmd.Process.Pid }

// End has the child end by itself, and waits for it.
func (r *Running) End() error {
	_ = r.input.Close() // never fails
	return r.cmd.Wait()
}

// UntilEnd is for a child that [Begin] started. It reads the child's input, and gives a context that ends with the rest of the
// input.
func UntilEnd(ctx context.Context, in *json.Decoder, needs any) (context.Context, context.CancelFunc, error) {
	if err := in.Decode(needs); err != nil {
		return nil, nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	go func() { // It ends with the process, or before.
		_ = in.Decode(new(any))
		stop()
	}()
	return ctx, stop, nil
}
