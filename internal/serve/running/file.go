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
	// pattern matches the names of the files.
	pattern = "serve-*.json"
	// largest is larger than any such file.
	largest = 1 << 20
)

// A Server is the content of a server's file.
type Server struct {
	serve.Access
	Database string `json:"database"` // as Identity returns it
	Cluster  string `json:"cluster"`  // the UID
	PID      int    `json:"pid"`
}

// Folders returns the folders of the files, the preferred one first. runtimeDir is XDG_RUNTIME_DIR, or "".
func Folders(runtimeDir, dataDir string) []string {
	folders := []string{filepath.Join(dataDir, "serve")}
	if filepath.IsAbs(runtimeDir) { // its specification says to ignore a relative path
		folders = append([]string{filepath.Join(runtimeDir, "kuberewind")}, folders...)
	}
	return folders
}

// Publish writes a file into the first folder where that succeeds. remove deletes it.
func (s *Server) Publish(folders []string) (remove func() error, err error) {
	var errs []error
	for _, folder := range folders {
		name, err := s.write(folder)
		if err == nil {
			return func() error { return os.Remove(name) }, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("publish the address of the server for other commands: %w", errors.Join(errs...))
}

// write makes the file appear complete, by renaming it.
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

// read returns the content of a file, if only its owner can have written it.
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

// safe returns an error if the owner or the mode of a file is wrong.
func safe(info os.FileInfo) error {
	owner := info.Sys().(*syscall.Stat_t).Uid
	switch {
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case int(owner) != os.Getuid():
		return fmt.Errorf("its owner has UID %d, not %d", owner, os.Getuid())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("its mode is %#o: forbid others to read or write it", info.Mode().Perm())
	}
	return nil
}
