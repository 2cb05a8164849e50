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

// builtTests are the tests of a package at one revision, as a program.
type builtTests struct {
	program, dir string
	results      *os.File // of its revision
}

func (c *comparison) run(ctx context.Context, stdout io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "kuberewind-compare-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var tests []builtTests
	stat := c.stat
	for i, revision := range c.revisions {
		side := []string{"old", "new"}[i]
		tree := filepath.Join(dir, side)
		if err := tell(exec.CommandContext(ctx, "git", "worktree", "add", "--detach", tree, revision)); err != nil {
			return err
		}
		defer func() {
			// What is left of a worktree would stay in the list of them for good.
			err = errors.Join(err, tell(exec.Command("git", "worktree", "remove", "--force", tree)))
		}()
		results, err := os.Create(filepath.Join(dir, side+".txt"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, results.Close()) }()
		stat = append(stat, side+"="+results.Name())
		built, err := c.build(ctx, tree, results)
		if err != nil {
			return err
		}
		tests = append(tests, built...)
	}
	for n := range c.count {
		for _, t := range tests {
			fmt.Fprintf(c.log, "bench: %d of %d: %s\n", n+1, c.count, t.dir)
			cmd := exec.CommandContext(ctx, t.program, "-test.run=^$", "-test.bench="+c.pattern, "-test.benchtime="+c.duration, "-test.benchmem")
			cmd.Dir, cmd.Stdout = t.dir, t.results
			if err := tell(cmd); err != nil {
				return err
			}
		}
	}
	cmd := exec.CommandContext(ctx, stat[0], stat[1:]...)
	cmd.Stdout = stdout
	return tell(cmd)
}

// build compiles the tests of one revision.
func (c *comparison) build(ctx context.Context, tree string, results *os.File) (tests []builtTests, err error) {
	for _, p := range c.packages {
		t := builtTests{dir: filepath.Join(tree, p), results: results}
		if _, err := os.Stat(t.dir); errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(c.log, "bench: there is no %s in it\n", t.dir)
			continue
		}
		t.program = filepath.Join(t.dir, "compared.test")
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", t.program, ".")
		cmd.Dir = t.dir
		if err := tell(cmd); err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	if len(tests) == 0 {
		return nil, fmt.Errorf("none of %s is in %s", c.packages, tree)
	}
	return tests, nil
}

// tell runs a command, whose error has what it complained about.
func tell(cmd *exec.Cmd) error {
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, bytes.TrimSpace(complaints.Bytes()))
	}
	return nil
}
