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
			t := s.test(ctx, binary, name, difference)
			into.add(s.name, name, t, difference, listed && !t.unexplained)
			return ctx.Err()
		})
	}
	return all.Wait()
}

// A try is one run of a test.
type try struct {
	outcome
	said        string // what it printed
	log         string // the file that holds it
	unexplained bool   // it does not pass under the setting of its difference
}

// stuckDouble is where client-go's double of a source holds up a watch for ever that is opened while a test shuts it down:
// Shutdown never gives its lock back.
const stuckDouble = "cache/testing.(*FakeControllerSource).Watch"

// maxTries is how often a test is run that does not end as expected. Some of client-go's tests measure times, and fail on a
// busy machine.
const maxTries = 4

// test runs a test until it passes or differs as documented. A data race or a leak counts at once, unless client-go's own
// double leaks.
func (s suite) test(ctx context.Context, binary, name string, d difference) (t try) {
	for range maxTries {
		t = s.once(ctx, binary, name, "")
		if d.how.setting() != "" && d.excuses(t.outcome) {
			if with := s.once(ctx, binary, name, d.how.setting()); with.outcome != passed {
				t = with
				t.unexplained = true
			}
		}
		if t.outcome == passed || t.outcome == raced || d.excuses(t.outcome) && !t.unexplained ||
			t.outcome == leaked && !strings.Contains(t.said, stuckDouble) {
			break
		}
	}
	return t
}

// once runs a test, with a variable in its environment if there is one.
func (s suite) once(ctx context.Context, binary, name, setting string) try {
	log := filepath.Join(filepath.Dir(binary), s.name+"."+name+setting+".log")
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
		said = fmt.Appendln(said, err)
	}
	return try{outcome: judge(name, "\n"+string(said), err, ctx.Err() != nil), said: string(said), log: log}
}

// judge names how a test ended, by what it said. Outcomes that are never excused come first.
func judge(name, said string, err error, killed bool) outcome {
	switch {
	case races(said):
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

// racing is what stands before the top frame of each of the two accesses of a data race.
var racing = regexp.MustCompile(`(?m)^(?:Previous )?(?:[Rr]ead|[Ww]rite|atomic read|atomic write) at 0x[0-9a-f]+ by .*:\n\s*(\S+)`)

// races reports whether a data race was found. A test whose goroutine fails it after its end races inside package testing:
// that is the test's own, and it panics as well.
func races(said string) bool {
	reports := strings.Split(said, "WARNING: DATA RACE")[1:]
	for _, report := range reports {
		report, _, _ = strings.Cut(report, "==================")
		accesses := racing.FindAllStringSubmatch(report, -1)
		for _, access := range accesses {
			if !strings.HasPrefix(access[1], "testing.") {
				return true
			}
		}
		if len(accesses) == 0 {
			return true
		}
	}
	return false
}
