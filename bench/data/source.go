package data

import (
	"crypto/sha256"
	"fmt"
	"os"
)

// Source says where a Set comes from, and can be sent to another process. With a path, it is a recording; else it is generated.
type Source struct {
	Path     string
	Settings Settings
}

// Open gives the Set.
func (s Source) Open() (Set, error) {
	if s.Path != "" {
		return Open(s.Path)
	}
	return Generate(s.Settings)
}

// Name says in two or three words what the source is. A recording's name holds the beginning of its digest, so that no two are
// alike.
func (s Source) Name() (string, error) {
	if s.Path == "" {
		return "generated", nil
	}
	recording, err := os.ReadFile(s.Path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("recording %.4x", sha256.Sum256(recording)), nil
}
