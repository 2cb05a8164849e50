package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// clientGo is the module whose tests are run, tools/cache the package.
const clientGo = "k8s.io/client-go"

// A workshop makes test binaries in a folder, and does not change the project.
type workshop struct {
	folder   string
	project  string            // the folder of this module
	testdata string            // of this command
	source   string            // client-go's tools/cache
	overlay  map[string]string // what the go command sees in the project: the file in whose place, or beside others
}

func newWorkshop(ctx context.Context, folder string) (*workshop, error) {
	w := &workshop{folder: folder, overlay: map[string]string{}}
	module, err := goList(ctx, clientGo)
	if err != nil {
		return nil, err
	}
	w.source = filepath.Join(module, "tools", "cache")
	if w.project, err = goList(ctx, ""); err != nil {
		return nil, err
	}
	w.testdata = filepath.Join(w.project, "test", "upstream", "testdata")
	// The tests of client-go need modules that this one does not name.
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(w.project, name))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	return w, w.lay("deltafifo", filepath.Join("adapters", "deltafifo"))
}

// goCommand is one of this module alone: a workspace takes no other go.mod.
func goCommand(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Env = append(os.Environ(), "GOWORK=off")
	return command
}

// goList gives the folder of a module, "" for this one.
func goList(ctx context.Context, module string) (string, error) {
	args := []string{"list", "-m", "-f", "{{.Dir}}"}
	if module != "" {
		args = append(args, module)
	}
	out, err := goCommand(ctx, args...).Output()
	if err != nil {
		return "", fmt.Errorf("find the folder of module %q: %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// lay puts the adapters of a folder of testdata into a package of the project.
func (w *workshop) lay(into, from string) error {
	files, err := filepath.Glob(filepath.Join(w.testdata, from, "*.go"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no adapters in %s", from)
	}
	for _, file := range files {
		w.overlay[filepath.Join(w.project, into, filepath.Base(file))] = file
	}
	return err
}

// build makes the test binary of a suite.
func (w *workshop) build(ctx context.Context, s suite) (binary string, err error) {
	into := filepath.Join("test", "upstream", "forked", s.name)
	f, err := newFork(s.name, filepath.Join(w.testdata, "drop-"+s.name+".txt"))
	if err != nil {
		return "", err
	}
	files, err := f.copy(w.source, filepath.Join(w.folder, s.name))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		w.overlay[filepath.Join(w.project, into, filepath.Base(file))] = file
	}
	for _, adapters := range []string{"both", s.name} {
		if err := w.lay(into, filepath.Join("adapters", adapters)); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": w.overlay})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(w.folder, s.name+".overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(w.folder, s.name+".test")
	command := goCommand(ctx, "test", "-c", "-race", "-vet=off", "-o", binary, "-overlay", overlay,
		"-mod=mod", "-modfile", filepath.Join(w.folder, "go.mod"), "./"+filepath.ToSlash(into))
	command.Dir, command.Stdout, command.Stderr = w.project, os.Stderr, os.Stderr
	return binary, command.Run()
}
