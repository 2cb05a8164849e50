package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxSocketDir is the maximum length of the socket's directory. All supported systems allow paths of 103 bytes (Linux: 107), and
// "/.s.PGSQL.65535" must fit, too.
const maxSocketDir = 103 - len("/.s.PGSQL.65535")

// layout names the files and directories in DataDir.
type layout struct{ dir string }

func (l layout) data() string       { return filepath.Join(l.dir, "data") }
func (l layout) scratch() string    { return filepath.Join(l.dir, "data.init") }
func (l layout) settings() string   { return filepath.Join(l.dir, "server.conf") }
func (l layout) passFile() passFile { return passFile(filepath.Join(l.dir, "pgpass")) }
func (l layout) logs() string       { return filepath.Join(l.dir, "log") }
func (l layout) startLog() string   { return filepath.Join(l.logs(), "startup.log") }
func (l layout) binaries() string   { return filepath.Join(l.dir, "binaries") }
func (l layout) locks() nameLocks   { return nameLocks(filepath.Join(l.dir, "locks")) }
func (l layout) startFiles() string { return filepath.Join(l.dir, "server.files") }

func (l layout) pidFile() pidFile { return pidFile{data: l.data()} }

func (l layout) presence() presence {
	return presence{
		dir:       l.dir,
		lifecycle: filepath.Join(l.dir, "lifecycle.lock"),
		holders:   filepath.Join(l.dir, "holders.lock"),
		server:    filepath.Join(l.dir, "server.lock"),
	}
}

// socketDir returns the directory of the socket. It is the same in all processes that use DataDir with the same account. It contains no
// comma, because clients read a comma as the end of a host.
func (l layout) socketDir(a account) string {
	dir := filepath.Join(l.dir, "run")
	if len(dir) <= maxSocketDir && !strings.Contains(dir, ",") {
		return dir
	}
	sum := sha256.Sum256([]byte(l.dir))
	return fmt.Sprintf("/tmp/kuberewind-%d-%s", a.uid, hex.EncodeToString(sum[:6]))
}

// makeRoot makes DataDir, which belongs to the user. If the server runs under another account, that account can enter DataDir.
func (l layout) makeRoot(asRoot bool) error {
	mkdir := func() error { return os.MkdirAll(l.dir, 0o700) }
	if asRoot {
		mkdir = func() error { return makeEnterable(l.dir, 0o711) }
	}
	if err := mkdir(); err != nil {
		return explainPath("make the data directory", l.dir, err)
	}
	if _, err := os.Stat(filepath.Join(l.dir, "PG_VERSION")); err == nil {
		return fmt.Errorf("%s is a data directory of PostgreSQL itself: name an empty directory, or start that server "+
			"yourself and give its URL", l.dir)
	}
	return nil
}

// makeEnterable is MkdirAll for root, whose umask may be strict. Existing directories keep their modes.
func makeEnterable(dir string, mode fs.FileMode) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := makeEnterable(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	// Another process may make the same directory at the same time.
	if err := os.Mkdir(dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Chmod(dir, mode)
}

// makeServerDirs makes the directories to which the server's account writes.
func (l layout) makeServerDirs(a account) error {
	for _, dir := range []string{l.logs(), l.socketDir(a)} {
		if err := makePrivate(dir, a); err != nil {
			return err
		}
	}
	return nil
}

// makePrivate makes a directory that only the account can enter. It accepts an existing directory only if it has this owner and this mode,
// because any user could have made a directory below /tmp.
func makePrivate(dir string, a account) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = a.own(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return explainPath("make the directory", dir, err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return explainPath("look at the directory", dir, err)
	}
	uid, _, err := statOwner(info)
	if err != nil {
		return err
	}
	if !info.IsDir() || uid != a.uid || info.Mode().Perm() != 0o700 {
		return fmt.Errorf("%s has to be a directory of %s with mode 0700, and it is %v of %s: correct or remove it",
			dir, a.name, info.Mode(), accountName(uid))
	}
	return nil
}
