package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// A suite is one package of client-go's tests.
type suite struct {
	name     string
	patience time.Duration // after which one test hangs
}

// An outcome is how one test ended.
type outcome string

const (
	passed   outcome = "PASS"
	failed   outcome = "FAIL"
	skipped  outcome = "SKIP"
	hung     outcome = "HANG"
	panicked outcome = "PANIC"
	raced    outcome = "RACE"
	leaked   outcome = "LEAK"
)

// run runs each test of a suite in a process of its own, one for each processor at a time.
func (s suite) run(ctx context.Context, binary, only string, known expected, into *report) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	names, err := exec.CommandContext(ctx, binary, "-test.list", "^Test").Output()
	if err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for name := range strings.FieldsSeq(string(names)) {
		difference, listed := known[s.name][name]
		if !strings.HasPrefix(name, "Test") || !wanted.MatchString(name) {
			continue
		}
		if difference.how == tooSlow {
			into.leftOut(s.name, name, difference)
			continue
		}
		all.Go(func() error {
			got, log := s.test(ctx, binary, name, "")
			if listed && difference.how.setting() != "" && difference.excuses(got) {
				if got, log = s.test(ctx, binary, name, difference.how.setting()); got == passed {
					got = failed // as documented
				} else {
					listed = false // and not for the reason that is documented
				}
			}
			into.add(s.name, name, got, difference, listed, log)
			return ctx.Err()
		})
	}
	return all.Wait()
}

// stuckDouble is where client-go's double of a source holds up a watch for ever that is opened while a test shuts it down:
// Shutdown never gives its lock back.
const stuckDouble = "cache/testing.(*FakeControllerSource).Watch"

// maxTries is how often a test is run whose only leak may be the double's.
const maxTries = 4

// test runs one test, and again if client-go's own double was stuck at its end.
func (s suite) test(ctx context.Context, binary, name, setting string) (got outcome, log string) {
	for range maxTries {
		var said string
		got, said, log = s.once(ctx, binary, name, setting)
		if got != leaked || !strings.Contains(said, stuckDouble) {
			break
		}
	}
	return got, log
}

// once runs a test, with a variable in its environment if there is one.
func (s suite) once(ctx context.Context, binary, name, setting string) (got outcome, text, log string) {
	log = filepath.Join(filepath.Dir(binary), s.name+"."+name+setting+".log")
	// A test that does not end by itself is killed.
	ctx, cancel := context.WithTimeout(ctx, s.patience+10*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, binary, "-test.v", "-test.run", "^"+name+"$", "-test.parallel", "2", "-test.timeout", s.patience.String())
	command.Dir = filepath.Dir(binary)
	if setting != "" {
		command.Env = append(os.Environ(), setting)
	}
	said, err := command.CombinedOutput()
	if err := os.WriteFile(log, said, 0o600); err != nil {
		return failed, "", err.Error()
	}
	return judge(name, "\n"+string(said), err, ctx.Err() != nil), string(said), log
}

// judge names how a test ended, by what it said. What a test is not excused for comes first.
func judge(name, said string, err error, killed bool) outcome {
	switch {
	case strings.Contains(said, "DATA RACE"):
		return raced
	case killed, strings.Contains(said, "panic: test timed out"):
		return hung
	case strings.Contains(said, "\npanic:"), strings.Contains(said, "\nfatal error:"):
		return panicked
	case strings.Contains(said, fmt.Sprintf("\n--- FAIL: %s ", name)):
		return failed
	case strings.Contains(said, "found unexpected goroutines"):
		return leaked
	case strings.Contains(said, fmt.Sprintf("\n--- SKIP: %s ", name)):
		return skipped
	case err != nil:
		return failed
	}
	return passed
}
