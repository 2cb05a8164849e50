package binaries

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
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
	_, err := b.goOutput(ctx, source.module, "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", target, source.pkg)
	return err
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

// goOutput runs the go command in a nested module and returns what it printed, without the last line's end. What it
// says on standard error goes to progress.
func (b *builder) goOutput(ctx context.Context, module string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = filepath.Join(b.root, module)
	command.Env = goEnvironment()
	command.Stderr = b.progress
	// An interrupted go command removes its temporary files and ends its compilers.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = 10 * time.Second
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w", args[0], module, err)
	}
	return strings.TrimSpace(string(output)), nil
}

// goEnvironment is the environment for building programs of this machine whatever the caller's own settings are. cgo
// is off, so that a machine with half a C toolchain builds the same program as one with none.
func goEnvironment() []string {
	return append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
}
