// Package pgdata spares the servers of tests and of small benchmarks their initdb, which takes most of the CPU time of
// a start.
//
// make test runs hack/pgdata once. It makes the data directory of a server that has run, and been stopped. [Fill]
// copies it for each new server. If [Env] is unset, Fill copies nothing, and embedded.Start runs initdb as it does for
// users.
//
// All copies have one password, which is in the file pgpass next to the data. So use them only for servers that no
// other user can reach.
package pgdata

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Env names the environment variable with the folder that hack/pgdata has made.
const Env = "KUBEREWIND_TEST_POSTGRES"

// memory is Linux's file system in memory. Copying a database there takes a quarter of the CPU time. Servers use it if
// it has room bytes free.
const memory, room = "/dev/shm", 2 << 30

// Place returns the folder for the servers of tests; "" is the system's temporary folder.
func Place() string {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err != nil || fs.Bavail*uint64(fs.Bsize) < room {
		return ""
	}
	return memory
}

// parts are the files that embedded.Start makes before it first starts a server.
var parts = []string{"data", "pgpass"}

// Fill puts a copy of the data into dir, where embedded.Start finds it. It creates dir, and changes nothing if dir
// already has data.
func Fill(dir string) error {
	made := os.Getenv(Env)
	if made == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, parts[0])); err == nil {
		return nil
	}
	if err := makeEnterable(dir); err != nil {
		return err
	}
	return Copy(made, dir)
}

// makeEnterable makes a folder as embedded.Start does. If this process runs as root, the server runs under another
// account.
func makeEnterable(dir string) error {
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}

// Copy copies the data of one folder to another, with their owners and modes.
func Copy(from, to string) error {
	args := []string{"-a"}
	for _, part := range parts {
		args = append(args, filepath.Join(from, part))
	}
	if out, err := exec.Command("cp", append(args, to+string(filepath.Separator))...).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the data directory of PostgreSQL in %s, which %s names: %w: %s; run make test-programs, or unset %s", from, Env, err, out, Env)
	}
	return nil
}
