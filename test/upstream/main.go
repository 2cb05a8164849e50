// Command upstream runs client-go's own tests of tools/cache on kuberewind's reflector, queue and indexer.
//
// It reads the files of tools/cache from the module cache and rewrites them into a temporary folder. It cuts out what kuberewind
// replaces, and makes the types of its signatures aliases of client-go's. The files of testdata/adapters put kuberewind's types
// in their place. By an overlay the go command sees the result as packages of this module. So nothing is written here, and
// nothing of client-go is kept.
//
// Each test runs alone and with the race detector. testdata/expected.tsv lists the differences that are by design, each with
// the sentence that documents it. Everything else that does not pass is a bug.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	keep := flag.Bool("keep", false, "keep the temporary folder, with the logs of the tests")
	only := flag.String("only", "", "run only the tests whose names match this regular expression")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	bugs, err := upstream(ctx, *keep, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
	}
	if err != nil || bugs > 0 {
		os.Exit(1)
	}
}

// suites are the packages that are made. A test that takes longer than patience hangs.
var suites = []suite{
	{name: "fifo", patience: 12 * time.Second},
	{name: "cache", patience: 40 * time.Second},
}

func upstream(ctx context.Context, keep bool, only string) (bugs int, err error) {
	folder, err := os.MkdirTemp("", "kuberewind-upstream-")
	if err != nil {
		return 0, err
	}
	if keep {
		fmt.Fprintln(os.Stdout, "kept:", folder)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	}
	w, err := newWorkshop(ctx, folder)
	if err != nil {
		return 0, err
	}
	known, err := readExpected(filepath.Join(w.testdata, "expected.tsv"))
	if err != nil {
		return 0, err
	}
	var all report
	for _, s := range suites {
		binary, err := w.build(ctx, s)
		if err != nil {
			return 0, fmt.Errorf("build suite %s: %w", s.name, err)
		}
		if err := s.run(ctx, binary, only, known, &all); err != nil {
			return 0, fmt.Errorf("run suite %s: %w", s.name, err)
		}
	}
	return all.bugs, all.print(os.Stdout)
}
