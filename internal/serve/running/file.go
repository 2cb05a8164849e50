package running

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/kuberewind/kuberewind/internal/serve"
)

const (
	// pattern is that of the names of files.
	pattern = "serve-*.json"
	// largest is more than any file has.
	largest = 1 << 20
)

// A Server is a server as its file describes it.
type Server struct {
	serve.Access
	Database string `json:"database"` // as Identity has it
	Cluster  string `json:"cluster"`  // the UID
	PID      int    `json:"pid"`
}

// Folders are where files lie, the best first. runtimeDir is XDG_RUNTIME_DIR, or "".
func Folders(runtimeDir, dataDir string) []string {
	folders := []string{filepath.Join(dataDir, "serve")}
	if filepath.IsAbs(runtimeDir) { // else it does not count, says its specification
		folders = append([]string{filepath.Join(runtimeDir, "kuberewind")}, folders...)
	}
	return folders
}

// Publish writes a file into the first folder that takes it. The function removes it.
func (s *Server) Publish(folders []string) (remove func() error, err error) {
	var errs []error
	for _, folder := range folders {
		name, err := s.write(folder)
		if err == nil {
			return func() error { return os.Remove(name) }, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("write the file by which other commands find the server: %w", errors.Join(errs...))
}

// write has the file appear whole.
func (s *Server) write(folder string) (name string, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(folder, "serve-*.tmp") // 0600
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	name = strings.TrimSuffix(file.Name(), ".tmp") + ".json"
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return name, nil
}

// read gives what a file says, if only its owner can have written it.
func read(name string) (*Server, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := safe(info); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s := &Server{}
	if err := json.NewDecoder(io.LimitReader(file, largest)).Decode(s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// safe says what is wrong with the owner or the mode of a file.
func safe(info os.FileInfo) error {
	owner := info.Sys().(*syscall.Stat_t).Uid
	switch {
	case !info.Mode().IsRegular():
		return errors.New("it is no file")
	case int(owner) != os.Getuid():
		return fmt.Errorf("its owner has UID %d, not %d", owner, os.Getuid())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("its mode is %#o: others may not read or write it", info.Mode().Perm())
	}
	return nil
}
