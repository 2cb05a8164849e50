package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/history"
)

// The peak memory of a rebuild is that of a process which does nothing else: this program, told so by these variables.
const (
	childURL = "KUBEREWIND_BENCH_URL" // not an argument, because it holds a password
	childSeq = "KUBEREWIND_BENCH_SEQ"
)

var errNotChild = errors.New("this process was not started to rebuild")

// peakOfChild gives the peak of the resident memory of a process that rebuilds a cluster once, 0 where the system does not tell.
func peakOfChild(ctx context.Context, url string, seq int64) (int64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	child := exec.CommandContext(ctx, self)
	child.Env = append(os.Environ(), childURL+"="+url, childSeq+"="+strconv.FormatInt(seq, 10))
	child.Stderr = os.Stderr
	out, err := child.Output()
	if err != nil {
		return 0, fmt.Errorf("a process that rebuilds: %w", err)
	}
	return strconv.ParseInt(string(bytes.TrimSpace(out)), 10, 64)
}

// rebuildOnce is what that process does.
func rebuildOnce(ctx context.Context, out io.Writer) error {
	url := os.Getenv(childURL)
	if url == "" {
		return errNotChild
	}
	seq, err := strconv.ParseInt(os.Getenv(childSeq), 10, 64)
	if err != nil {
		return err
	}
	record, err := history.Open(ctx, url, history.Options{})
	if err != nil {
		return err
	}
	defer record.Close()
	way, err := rebuild(ctx, record, history.AtSeq(seq), history.RebuildOptions{})
	if err != nil {
		return err
	}
	memory, err := measure.MemoryOf(os.Getpid())
	fmt.Fprintln(out, memory.Peak)
	runtime.KeepAlive(way.snapshot)
	return err
}
