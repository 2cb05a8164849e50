package recordertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// commands is the path of the packages of the programs.
const commands = "github.com/kuberewind/kuberewind/cmd/"

// ProgramsEnv is the environment variable that names a folder with built programs. make test sets it.
const ProgramsEnv = "KUBEREWIND_TEST_PROGRAMS"

// built is the folder of the programs, while Main runs.
var built string

// Program returns the path of a program that Main has found or built.
func Program(name string) string { return filepath.Join(built, name) }

// Main finds or builds the named programs, runs the tests of a package as pgtest.Main does, and exits. It unsets the variables by which the
// environment could choose a cluster.
func Main(m goleak.TestingM, programs ...string) {
	for _, name := range []string{"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"} {
		_ = os.Unsetenv(name) // fails only for invalid names
	}
	pgtest.Main(withPrograms{m, programs})
}

// withPrograms provides the programs while the tests run.
type withPrograms struct {
	tests    goleak.TestingM
	programs []string
}

// Run implements goleak.TestingM.
func (w withPrograms) Run() int {
	built = os.Getenv(ProgramsEnv)
	if built == "" {
		return w.build()
	}
	for _, name := range w.programs {
		if _, err := os.Stat(Program(name)); err != nil {
			fmt.Fprintf(os.Stderr, "%s names a folder without a program: %v; unset it, and the tests build their own\n", ProgramsEnv, err)
			return 1
		}
	}
	return w.tests.Run()
}

// build builds the programs, runs the tests and removes the programs.
func (w withPrograms) build() int {
	dir, err := os.MkdirTemp("", "kuberewind-programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // if it fails, files remain only in the system's temporary folder
	built = dir
	args := []string{"build", "-ldflags", "-s -w", "-o", dir + "/"}
	for _, name := range w.programs {
		args = append(args, commands+name)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the programs: %v\n%s", err, out)
		return 1
	}
	return w.tests.Run()
}

// RunProgram runs a program to its end. It returns the exit code and the whole output.
func RunProgram(t testing.TB, name string, args ...string) (code int, output string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), Program(name), args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v", name, err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	return code, string(out)
}
