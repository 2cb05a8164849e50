package parts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// A micro is a package's tests as a program, for its benchmarks: each run is a process of its own.
type micro struct {
	program string
	dir     string // where tests expect to run
}

const module = "github.com/kuberewind/kuberewind/"

// withMicro compiles the tests of a package, needs the sources and the go command for that, and removes the program at the end.
func withMicro(ctx context.Context, run *measure.Run, folder string, use func(*micro) error) error {
	dir, err := os.MkdirTemp(run.Dir, "kuberewind-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	where, err := output(exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", module+folder))
	if err != nil {
		return err
	}
	m := &micro{program: filepath.Join(dir, "tests"), dir: strings.TrimSpace(string(where))}
	if _, err := output(exec.CommandContext(ctx, "go", "test", "-c", "-o", m.program, module+folder)); err != nil {
		return err
	}
	return use(m)
}

// run runs the benchmarks that a pattern names, with its parts as b.Run has them, and gives what each reports by its unit. Names come without the
// number of processors.
func (m *micro) run(ctx context.Context, pattern, duration string, args ...string) (map[string]map[string]float64, error) {
	pattern = "^" + strings.ReplaceAll(pattern, "/", "$/^") + "$"
	cmd := exec.CommandContext(ctx, m.program, append([]string{"-test.run=^$", "-test.bench=" + pattern, "-test.benchtime=" + duration, "-test.benchmem"}, args...)...)
	cmd.Dir = m.dir
	text, err := output(cmd)
	if err != nil {
		return nil, err
	}
	all := make(map[string]map[string]float64)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 3 && strings.HasPrefix(fields[0], "Benchmark") {
			name := processors.ReplaceAllString(fields[0], "")
			if all[name], err = reported(fields); err != nil {
				return nil, err
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no benchmark of %s is called %s", m.dir, pattern)
	}
	return all, nil
}

// one runs a single benchmark.
func (m *micro) one(ctx context.Context, name, duration string, args ...string) (map[string]float64, error) {
	all, err := m.run(ctx, name, duration, args...)
	if err == nil && all[name] == nil {
		err = fmt.Errorf("no benchmark of %s is called %s", m.dir, name)
	}
	return all[name], err
}

var processors = regexp.MustCompile(`-[0-9]+$`)

// reported reads the fields of a benchmark's line: its name, how often it ran, and then values with their units.
func reported(fields []string) (map[string]float64, error) {
	values := make(map[string]float64)
	for i := 2; i+1 < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return nil, fmt.Errorf("a benchmark says %q: %w", fields, err)
		}
		values[fields[i+1]] = v
	}
	if values["ns/op"] == 0 {
		return nil, fmt.Errorf("a benchmark does not say how long it took: %q", fields)
	}
	return values, nil
}

// output runs a command, whose error has what it complained about.
func output(cmd *exec.Cmd) ([]byte, error) {
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s%s", cmd, err, bytes.TrimSpace(complaints.Bytes()), bytes.TrimSpace(text))
	}
	return text, nil
}

// perSecond turns the nanoseconds of one operation around.
func perSecond(nanoseconds float64) float64 { return 1e9 / nanoseconds }
