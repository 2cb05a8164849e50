package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A comparison runs the Go micro-benchmarks of two revisions in turn, and gives what they printed to benchstat.
type comparison struct {
	revisions [2]string
	packages  []string
	pattern   string
	duration  string
	count     int
	stat      []string // benchstat, run where this program was started
	log       io.Writer
}

// compareCommand says with what certainty a revision is faster or slower than another.
func compareCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	c := &comparison{log: stderr, stat: []string{"go", "tool", "-modfile=tools/go.mod", "benchstat"}}
	flags.StringVar(&c.revisions[0], "old", "", "revision to compare with")
	flags.StringVar(&c.revisions[1], "new", "HEAD", "revision to compare; what is not committed is not part of it")
	packages := flags.String("packages", "./patch,./kube,./deltafifo,./deltafifo/spool,./sink/postgres,./history,./indexer", "packages whose benchmarks are run; one that a revision does not have is left out")
	flags.StringVar(&c.pattern, "bench", ".", "which of their benchmarks, as go test takes it")
	flags.StringVar(&c.duration, "benchtime", "200ms", "how long each is run, or how often, as 100x")
	flags.IntVar(&c.count, "count", 10, "how often; benchstat wants ten")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || c.revisions[0] == "" || c.count < 1 {
		return fmt.Errorf("-old names a revision, -count is at least 1, and there are no arguments: %q, %d, %q", c.revisions[0], c.count, flags.Args())
	}
	c.packages = strings.Split(*packages, ",")
	return c.run(ctx, stdout)
}

// A side is one of the two revisions.
type side struct {
	tree     string            // its worktree
	results  *os.File          // what its benchmarks print
	programs map[string]string // tests, by package
}

func (c *comparison) run(ctx context.Context, stdout io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "kuberewind-compare-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var sides []*side
	stat := c.stat
	for i, revision := range c.revisions {
		name := []string{"old", "new"}[i]
		s := &side{tree: filepath.Join(dir, name)}
		// Before it is there: one that is interrupted while it is made is in git's list already.
		defer func() { err = errors.Join(err, removeTree(ctx, s.tree)) }()
		if err := runQuietly(exec.CommandContext(ctx, "git", "worktree", "add", "--detach", s.tree, revision)); err != nil {
			return err
		}
		if s.results, err = os.Create(filepath.Join(dir, name+".txt")); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.results.Close()) }()
		stat = append(stat, name+"="+s.results.Name())
		if s.programs, err = c.build(ctx, s.tree); err != nil {
			return err
		}
		sides = append(sides, s)
	}
	for n := range c.count {
		if err := c.turn(ctx, n, sides); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, stat[0], stat[1:]...)
	cmd.Stdout = stdout
	return runQuietly(cmd)
}

// turn runs each package's benchmarks of both sides, one right after the other, so that the machine is the same for both. Every other turn the other side
// comes first.
func (c *comparison) turn(ctx context.Context, n int, sides []*side) error {
	for _, p := range c.packages {
		for i := range sides {
			s := sides[(n+i)%len(sides)]
			if s.programs[p] == "" {
				continue
			}
			cmd := exec.CommandContext(ctx, s.programs[p], "-test.run=^$", "-test.bench="+c.pattern, "-test.benchtime="+c.duration, "-test.benchmem")
			cmd.Dir, cmd.Stdout = filepath.Join(s.tree, p), s.results
			fmt.Fprintf(c.log, "bench: %d of %d: %s\n", n+1, c.count, cmd.Dir)
			if err := runQuietly(cmd); err != nil {
				return err
			}
		}
	}
	return nil
}

// build compiles the tests of one revision, by package.
func (c *comparison) build(ctx context.Context, tree string) (programs map[string]string, err error) {
	programs = make(map[string]string)
	for _, p := range c.packages {
		dir := filepath.Join(tree, p)
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(c.log, "bench: there is no %s in it\n", dir)
			continue
		}
		program := filepath.Join(dir, "compared.test")
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, ".")
		cmd.Dir = dir
		if err := runQuietly(cmd); err != nil {
			return nil, err
		}
		programs[p] = program
	}
	if len(programs) == 0 {
		return nil, fmt.Errorf("none of %s is in %s", c.packages, tree)
	}
	return programs, nil
}

// removing bounds how long a worktree may take to go, also after an interrupt.
const removing = time.Minute

// removeTree removes a worktree, or the part of it that exists, also if it is locked, as it is while it is made. Otherwise its
// entry would stay in git's list for good.
func removeTree(ctx context.Context, tree string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removing)
	defer cancel()
	if err := os.RemoveAll(tree); err != nil { // half of one git would refuse to remove
		return err
	}
	cmd := exec.CommandContext(ctx, "git", "worktree", "remove", "--force", "--force", tree)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if err := runQuietly(cmd); err != nil && !strings.Contains(err.Error(), "is not a working tree") {
		return err
	}
	return nil
}

// runQuietly runs a command. The error includes its standard error.
func runQuietly(cmd *exec.Cmd) error {
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, bytes.TrimSpace(complaints.Bytes()))
	}
	return nil
}
