package binaries

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kuberewind/kuberewind/internal/progress"
)

// program says where a program's sources are.
type program struct {
	module   string // the nested module, from the root of the tree
	pkg      string // the main package
	versions string // the module whose version the program shows as its own, "" for one that knows it by itself
}

const kubernetesModule = "k8s.io/kubernetes"

var programs = map[string]program{
	Etcd:              {module: "test/controlplane", pkg: "go.etcd.io/etcd/server/v3"},
	APIServer:         {module: "test/controlplane", pkg: "k8s.io/kubernetes/cmd/kube-apiserver", versions: kubernetesModule},
	Kubectl:           {module: "test/controlplane", pkg: "k8s.io/kubernetes/cmd/kubectl", versions: kubernetesModule},
	Scheduler:         {module: "test/controlplane", pkg: "k8s.io/kubernetes/cmd/kube-scheduler", versions: kubernetesModule},
	ControllerManager: {module: "test/controlplane", pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", versions: kubernetesModule},
	Kwok:              {module: "test/kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok"},
	setupEnvtest:      {module: envtest, pkg: "sigs.k8s.io/controller-runtime/tools/setup-envtest"},
}

// stageFolders are the folders of the kwok module whose stages make Nodes Ready and Pods run at once.
var stageFolders = []string{"kustomize/stage/node/fast", "kustomize/stage/node/heartbeat-with-lease", "kustomize/stage/pod/fast"}

// compile builds one program into the file target.
func (b *builder) compile(ctx context.Context, name, target string) error {
	source, known := programs[name]
	if !known {
		return fmt.Errorf("no program of that name; there are %s", strings.Join(Full, ", "))
	}
	flags := "-s -w"
	if source.versions != "" {
		version, err := b.goOutput(ctx, source.module, "list", "-m", "-f", "{{.Version}}", source.versions)
		if err != nil {
			return err
		}
		flags += versionFlags(version)
	}
	settings := []string{"-trimpath", "-buildvcs=false", "-ldflags", flags}
	// With the same settings, a stale package is one that the build will compile.
	stale, err := b.goOutput(ctx, source.module, slices.Concat([]string{"list"}, settings, []string{"-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", source.pkg})...)
	if err != nil {
		return err
	}
	command := b.goCommand(ctx, source.module, slices.Concat([]string{"build"}, settings, []string{"-v", "-o", target, source.pkg})...)
	command.Stderr = &compilation{progress: b.progress, expected: strings.Fields(stale)}
	if err := command.Run(); err != nil {
		return fmt.Errorf("go build in %s: %w", source.module, cause(ctx, err))
	}
	return nil
}

// compilation reads what `go build -v` says: the import path of each package when its turn comes, and errors.
type compilation struct {
	progress *progress.Progress
	expected []string
	begun    int
	partial  []byte // of the last line
}

func (c *compilation) Write(text []byte) (int, error) {
	c.partial = append(c.partial, text...)
	for {
		line, rest, whole := bytes.Cut(c.partial, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		c.read(string(line))
		c.partial = rest
	}
}

func (c *compilation) read(line string) {
	switch {
	case !slices.Contains(c.expected, line):
		c.progress.Say("%s\n", line)
	case c.begun+1 == len(c.expected): // the program itself, after all that it is made of
		c.begun++
		c.progress.Update("%d packages compiled, linking", c.begun)
	default:
		c.begun++
		c.progress.Update("package %d of %d, %s", c.begun, len(c.expected), line)
	}
}

// versionFlags gives the linker what a release build of Kubernetes would have: without it, the server calls itself
// v0.0.0-master, and clients that check for skew between versions complain.
func versionFlags(version string) string {
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(numbers) < 3 {
		return ""
	}
	var flags strings.Builder
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		fmt.Fprintf(&flags, " -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s", pkg, version, numbers[0], numbers[1])
	}
	return flags.String()
}

// writeStages gathers the kwok module's stages into one file.
func (b *builder) writeStages(ctx context.Context, target string) error {
	// The module may not be on this machine yet if the kwok program came from elsewhere.
	if _, err := b.goOutput(ctx, "test/kwok", "mod", "download", "sigs.k8s.io/kwok"); err != nil {
		return err
	}
	dir, err := b.goOutput(ctx, "test/kwok", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	stages, err := joinStages(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(target, stages, 0o644)
}

func joinStages(moduleDir string) ([]byte, error) {
	var stages bytes.Buffer
	for _, folder := range stageFolders {
		files, err := filepath.Glob(filepath.Join(moduleDir, folder, "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			// The folders hold kustomization files too.
			if bytes.Contains(text, []byte("\nkind: Stage\n")) {
				fmt.Fprintf(&stages, "---\n%s\n", bytes.TrimSpace(text))
			}
		}
	}
	if stages.Len() == 0 {
		return nil, fmt.Errorf("the kwok module in %s has no stages in %s", moduleDir, strings.Join(stageFolders, ", "))
	}
	return stages.Bytes(), nil
}

// goOutput runs the go command in a nested module and returns what it printed, without the last line's end. Its standard error
// goes to progress.
func (b *builder) goOutput(ctx context.Context, module string, args ...string) (string, error) {
	output, err := b.goCommand(ctx, module, args...).Output()
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w", args[0], module, cause(ctx, err))
	}
	return strings.TrimSpace(string(output)), nil
}

func (b *builder) goCommand(ctx context.Context, module string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = filepath.Join(b.root, module)
	command.Env = goEnvironment()
	command.Stderr = b.progress
	// An interrupted go command removes its temporary files and ends its compilers.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = 10 * time.Second
	return command
}

// cause prefers why the context ended to what became of the program then.
func cause(ctx context.Context, err error) error {
	if ended := context.Cause(ctx); ended != nil {
		return ended
	}
	return err
}

// goEnvironment is the environment for building programs of this machine whatever the caller's own settings are. cgo
// is off, so that a machine with half a C toolchain builds the same program as one with none.
func goEnvironment() []string {
	return append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
}
