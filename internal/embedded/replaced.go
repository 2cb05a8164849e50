package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Replacement is a file from which the server was started and which was replaced or removed since then.
type Replacement struct {
	Path string
	now  fileID
}

// Gone reports whether the file was removed and not replaced.
func (r Replacement) Gone() bool { return r.now == fileID{} }

// fileID identifies a file. If an upgrade replaces a file by another with the same name, the inode is different.
type fileID struct {
	Device, Inode  uint64
	Size, Modified int64 // bytes, nanoseconds
}

// identify returns the fileID of a path, or the zero fileID if there is no such file.
func identify(path string) (fileID, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fileID{}, nil
	}
	if err != nil {
		return fileID{}, explainPath("look at", path, err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, fmt.Errorf("identity of %s: not known on this system", path)
	}
	// The type of the device's number depends on the system.
	return fileID{Device: uint64(stat.Dev), Inode: stat.Ino, Size: info.Size(), Modified: info.ModTime().UnixNano()}, nil //nolint:unconvert // see above
}

// startFiles lists the files from which a server was started. It is stored next to the data, because another process may have started the
// server.
type startFiles struct {
	PID   int // of the server
	Files map[string]fileID
}

// noteStart writes startFiles: the server's program, as it was before the start, and the library of PL/pgSQL. The functions of the record
// are written in PL/pgSQL.
func (l *launcher) noteStart(ctx context.Context, pm postmaster, program string, was fileID) error {
	conn, err := l.login.connect(ctx, pm, "postgres")
	if err != nil {
		return err
	}
	var folder string
	err = conn.QueryRow(ctx, `SELECT setting FROM pg_config() WHERE name = 'PKGLIBDIR'`).Scan(&folder)
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return fmt.Errorf("ask the embedded PostgreSQL in %s for the folder of its libraries: %w", l.layout.dir, err)
	}
	noted := startFiles{PID: pm.pid, Files: map[string]fileID{program: was}}
	libraries, _ := filepath.Glob(filepath.Join(globEscape(folder), "plpgsql.*")) // the only error is that of a bad pattern
	for _, library := range libraries {
		if noted.Files[library], err = identify(library); err != nil {
			return err
		}
	}
	text, err := json.Marshal(noted)
	if err != nil {
		return err
	}
	return writeNew(l.layout.startFiles(), text)
}

// Replaced returns the files of the running server that were replaced on disk since it was started, for example by an upgrade of the
// package. The server goes on with the old files. For a server that was started by hand, it returns none.
func (s *Server) Replaced() ([]Replacement, error) { return s.layout.replaced() }

func (l layout) replaced() ([]Replacement, error) {
	text, err := os.ReadFile(l.startFiles())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explainPath("read", l.startFiles(), err)
	}
	var noted startFiles
	if err := json.Unmarshal(text, &noted); err != nil {
		return nil, fmt.Errorf("read %s: %w", l.startFiles(), err)
	}
	pm, err := l.pidFile().read()
	if errors.Is(err, fs.ErrNotExist) || err == nil && pm.pid != noted.PID {
		return nil, nil
	}
	if err != nil {
		return nil, explainPath("read", l.pidFile().path(), err)
	}
	return noted.replaced()
}

func (f startFiles) replaced() (found []Replacement, err error) {
	for path, was := range f.Files {
		now, err := identify(path)
		if err != nil {
			return nil, err
		}
		if now != was {
			found = append(found, Replacement{Path: path, now: now})
		}
	}
	slices.SortFunc(found, func(a, b Replacement) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

// BusyError says that Renew did not restart the server, because that would have cut sessions of other programs.
type BusyError struct{ Sessions int }

func (e *BusyError) Error() string {
	return fmt.Sprintf("%d sessions of others use it", e.Sessions)
}

// Renew restarts the server if its files were replaced. It cuts sessions that have one of the names. If there are other sessions, the server
// goes on, and the error is a *BusyError. Renew checks that the new binaries run before it stops the server.
func (s *Server) Renew(ctx context.Context, names ...string) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder == nil {
		return errors.New("this process no longer holds the embedded PostgreSQL")
	}
	lifecycle, err := s.layout.presence().lockLifecycle(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lifecycle.Close()) }()
	// Another holder may have restarted the server.
	replaced, err := s.layout.replaced()
	if err != nil || len(replaced) == 0 {
		return err
	}
	major, err := s.layout.dataMajor()
	if err != nil {
		return err
	}
	if _, err := s.programs.choose(ctx, major); err != nil {
		return err
	}
	others, err := s.login.othersThan(ctx, s.running, names)
	if err != nil {
		return err
	}
	if others > 0 {
		return &BusyError{others}
	}
	if err := s.launcher.shutdown(ctx); err != nil {
		return err
	}
	return s.ensure(ctx)
}
