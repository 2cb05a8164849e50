package binaries

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The files of a control plane folder.
const (
	APIServer         = "kube-apiserver"
	Etcd              = "etcd"
	Kubectl           = "kubectl"
	Scheduler         = "kube-scheduler"
	ControllerManager = "kube-controller-manager"
	Kwok              = "kwok"
	// KwokStages is the configuration that makes kwok play a kubelet without delays: one YAML file of Stage documents.
	KwokStages = "kwok-stages.yaml"
)

// Minimal is what serves the Kubernetes API.
var Minimal = []string{Etcd, APIServer, Kubectl}

// Full is what also brings workloads to life.
var Full = []string{Etcd, APIServer, Kubectl, Scheduler, ControllerManager, Kwok, KwokStages}

// overrideVariable names a folder that holds the programs already.
const overrideVariable = "KUBEREWIND_CONTROL_PLANE"

// ErrMissing is returned, wrapped, by Find if a program has not been built.
var ErrMissing = errors.New("control plane programs are missing")

// Find returns the folder that holds all the named files, which are built ones for the module tree around the
// working directory. The error wraps ErrMissing, and says which make target builds them, if they are nowhere.
func Find(names ...string) (string, error) {
	if dir := os.Getenv(overrideVariable); dir != "" {
		return override(dir, names)
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	return findBuilt(root, names)
}

func override(dir string, names []string) (string, error) {
	if absent := missing(dir, names); len(absent) > 0 {
		return "", fmt.Errorf("%w: %s names %s, which holds no %s", ErrMissing, overrideVariable, dir, strings.Join(absent, ", no "))
	}
	return filepath.Abs(dir)
}

func findBuilt(root string, names []string) (string, error) {
	sum, err := sourceHash(root)
	if err != nil {
		return "", err
	}
	for _, cache := range cacheCandidates() {
		dir := filepath.Join(cache.path, "control-plane", sum)
		if len(missing(dir, names)) == 0 && cache.trusted() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w (%s): run `make %s` in %s once; it takes some minutes",
		ErrMissing, strings.Join(names, ", "), targetFor(names), root)
}

// targetFor returns the make target that builds the named files.
func targetFor(names []string) string {
	for _, name := range names {
		if name != Etcd && name != APIServer && name != Kubectl {
			return "control-plane-full"
		}
	}
	return "control-plane"
}

// missing returns those of names that dir does not hold.
func missing(dir string, names []string) []string {
	var absent []string
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			absent = append(absent, name)
		}
	}
	return absent
}
