package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// A Child is a part of this program that runs in a process of its own, so that its memory and CPU time are its own. It reads
// its input as JSON and writes its results.
type Child func(ctx context.Context, in *json.Decoder, out io.Writer) error

// Children are the parts that a program has, by name.
type Children map[string]Child

// childName is the variable that makes a process a child.
const childName = "KUBEREWIND_BENCH_CHILD"

// ErrNotChild says that this process was not started as a child.
var ErrNotChild = errors.New("this process is no child of a benchmark")

// Run does what this process was started for. A program calls it before everything else, a test binary in its TestMain; it returns
// [ErrNotChild] in a process that is none.
func (c Children) Run(ctx context.Context) error {
	name := os.Getenv(childName)
	if name == "" {
		return ErrNotChild
	}
	child, found := c[name]
	if !found {
		return fmt.Errorf("this program has no child %q", name)
	}
	if err := child(ctx, json.NewDecoder(os.Stdin), os.Stdout); err != nil {
		return fmt.Errorf("child %s: %w", name, err)
	}
	return nil
}

// Command prepares a child: this same program. It reads its task from standard input. Everybody can read an argument, and the
// task may hold a password.
func Command(ctx context.Context, name string, needs any) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(needs)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childName+"="+name)
	cmd.Stdin = bytes.NewReader(text)
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// Output runs a child to its end and reads the one JSON value that it writes.
func Output(ctx context.Context, name string, needs, into any) error {
	cmd, err := Command(ctx, name, needs)
	if err != nil {
		return err
	}
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("child %s: %w", name, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("child %s said something else: %w", name, err)
	}
	return nil
}
