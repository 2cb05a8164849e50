package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// modulePath is the module whose tree holds the nested modules that are built.
const modulePath = "github.com/kuberewind/kuberewind"

// recipe is part of the hash: it changes when the way of building does, so that older files are not taken for new ones.
const recipe = "2"

// sources are the files, from the root of the tree, that decide what is built or downloaded.
var sources = []string{"test/controlplane/go.mod", "test/controlplane/go.sum", "test/kwok/go.mod", "test/kwok/go.sum", releasesFile}

// moduleRoot returns the root of the module tree around the working directory.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if declares(filepath.Join(dir, "go.mod"), modulePath) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no source tree of %s around %s: run this inside one, or set %s to a folder that holds the programs",
				modulePath, start, overrideVariable)
		}
	}
}

// declares reports whether the go.mod file at path is the module's.
func declares(path, module string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == "module "+module {
			return true
		}
	}
	return false
}

// sourceHash identifies what a build at root gives: the sources, the target system and the way of building.
func sourceHash(root string) (string, error) {
	var source strings.Builder
	fmt.Fprintf(&source, "%s %s/%s\n", recipe, runtime.GOOS, runtime.GOARCH)
	for _, name := range sources {
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("the source tree at %s is not whole: %w", root, err)
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&source, "%s %d\n%s", name, len(text), text)
	}
	// 16 hexadecimal digits are read easily and still far from colliding.
	sum := sha256.Sum256([]byte(source.String()))
	return hex.EncodeToString(sum[:])[:16], nil
}
