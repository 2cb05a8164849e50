package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// programName is the name by which scripts call the program. If the test binary is started by that name, it acts as the program.
const programName = "recorder"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == programName {
		followParent()
		main()
	}
	pgtest.Main(withPlane{m})
}

// withPlane stops the shared control plane after the tests, before pgtest.Main counts goroutines.
type withPlane struct{ m *testing.M }

func (w withPlane) Run() int {
	code := w.m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		code = max(code, 1)
	}
	return code
}

var shared plane

// plane is one control plane for all scripts. The first script that needs it starts it.
type plane struct {
	once sync.Once
	made *controlplane.ControlPlane
	err  error
}

// limitedUser is a user who has only the rights that scripts grant.
const limitedUser = "limited"

func (p *plane) get() (*controlplane.ControlPlane, error) {
	p.once.Do(func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("it took too long"))
		defer cancel()
		p.made, p.err = controlplane.Start(ctx, controlplane.Options{Users: []controlplane.User{{Name: limitedUser}}})
	})
	return p.made, p.err
}

func (p *plane) stop() error {
	if p.made == nil {
		return nil
	}
	return p.made.Stop()
}

func TestScripts(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(self, filepath.Join(bin, programName)))
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup:               func(env *testscript.Env) error { return setup(env, bin) },
		Cmds:                commands,
	})
}

// setup gives each script its own home and data directory. The configuration of the user who runs the tests has no effect.
func setup(env *testscript.Env, bin string) error {
	env.Values[sceneKey{}] = &scene{TB: env.T().(testing.TB), program: filepath.Join(bin, programName), processes: map[string]*process{}}
	// The account of an embedded PostgreSQL could not enter the script's own directory.
	data, err := os.MkdirTemp("/tmp", "kuberewind-script-")
	if err != nil {
		return err
	}
	env.Defer(func() { _ = os.RemoveAll(data) })
	env.Setenv("DATA", data)
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, ".config"))
	env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
	env.Setenv("RECORDER_DATA_DIR", filepath.Join(data, "kuberewind"))
	env.Setenv("RECORDER_LISTEN", "127.0.0.1:0")
	return os.Chmod(data, 0o711)
}
