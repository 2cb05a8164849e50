package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// superuser is the role that owns the cluster, and also the name of the database.
const superuser = "kuberewind"

// defaultPort is part of the socket's name if the options name no TCP port. No other server uses the directory of the socket.
const defaultPort = 5432

// dataMajor returns the major version that made the data, or 0 if there are none yet.
func (l layout) dataMajor() (int, error) {
	text, err := os.ReadFile(filepath.Join(l.data(), "PG_VERSION"))
	if err == nil {
		major, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return 0, fmt.Errorf("the PG_VERSION of %s: %w", l.data(), err)
		}
		return major, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, explainPath("read the version of", l.data(), err)
	}
	if _, err := os.Lstat(l.data()); !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%s exists and is not a data directory of PostgreSQL (it has no PG_VERSION): move it away, "+
			"or choose another data directory", l.data())
	}
	return 0, nil
}

// HasData reports whether Start would find data in a data directory. It changes nothing.
func HasData(dataDir string) (bool, error) {
	major, err := layout{dataDir}.dataMajor()
	return major != 0, err
}

// Runs reports whether a server that this package started runs in a data directory. It starts no server.
func Runs(dataDir string) (bool, error) {
	made, err := HasData(dataDir)
	if err != nil || !made {
		return false, err
	}
	return layout{dataDir}.presence().alive()
}

// cluster makes the data directory and the settings of the server.
type cluster struct {
	layout    layout
	programs  *programs
	socketDir string
	tcpPort   int  // Options.Port
	throwaway bool // Options.Throwaway
	log       *slog.Logger
}

// initialize makes the cluster in a scratch directory, and renames the directory when it is complete. The caller holds the lifecycle lock.
func (c *cluster) initialize(ctx context.Context) error {
	c.log.Info("making the data directory of the embedded PostgreSQL", "dir", c.layout.dir, "version", c.programs.bin.version,
		"user", c.programs.account.name)
	password, err := c.layout.passFile().ensure()
	if err != nil {
		return err
	}
	// The children of a killed initdb run on for a while, and hold the lock as a server does.
	lock, err := c.layout.presence().takeServer(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // nothing was written
	if err := os.RemoveAll(c.layout.scratch()); err != nil {
		return explainPath("remove an unfinished data directory", c.layout.scratch(), err)
	}
	if err := makePrivate(c.layout.scratch(), c.programs.account); err != nil {
		return err
	}
	if err := c.initdb(ctx, password, lock); err != nil {
		return err
	}
	if err := c.layout.includeSettings(); err != nil {
		return err
	}
	if err := os.Rename(c.layout.scratch(), c.layout.data()); err != nil {
		return explainPath("put the data directory in place", c.layout.data(), err)
	}
	return nil
}

func (c *cluster) initdb(ctx context.Context, password string, lock *os.File) (err error) {
	passwordFile := filepath.Join(c.layout.dir, "initdb.password")
	if err := writeNew(passwordFile, []byte(password)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(passwordFile)) }()
	if err := c.programs.account.own(passwordFile); err != nil {
		return explainPath("hand over", passwordFile, err)
	}
	cmd := c.programs.command(ctx, "initdb", c.initdbArgs(passwordFile)...)
	cmd.ExtraFiles = []*os.File{lock}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return c.layout.explainOutput(fmt.Errorf("initdb of %s in %s: %w", c.programs.bin.dir, c.layout.dir, cause(ctx, err)), string(out))
	}
	return nil
}

func (c *cluster) initdbArgs(passwordFile string) []string {
	args := []string{
		"--pgdata=" + c.layout.scratch(), "--username=" + superuser, "--pwfile=" + passwordFile, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C", "--data-checksums",
	}
	if c.programs.bin.major >= 17 {
		// This locale sorts by code point as C does, and its functions upper and lower handle Unicode.
		args = append(args, "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
	}
	if c.throwaway {
		args = append(args, "--no-sync")
	}
	return args
}

// includeSettings makes postgresql.conf include the settings. The path is relative, so DataDir can be moved.
func (l layout) includeSettings() error {
	path := filepath.Join(l.scratch(), "postgresql.conf")
	// Another user owns the directory now, so a link there must not be followed.
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return explainPath("open", path, err)
	}
	_, err = file.WriteString("\n# The recorder's settings, rewritten at each start. If a setting occurs twice, the last line wins: put your settings below.\n" +
		"include '../" + filepath.Base(l.settings()) + "'\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return explainPath("write", path, err)
	}
	return nil
}

// writeSettings writes the settings before each start, because ports, paths and the features of the binaries may have changed.
func (c *cluster) writeSettings(ctx context.Context) error {
	var text strings.Builder
	text.WriteString("# Written by the recorder at each start.\n")
	for _, setting := range c.settings(c.supportsLZ4(ctx)) {
		fmt.Fprintf(&text, "%s = '%s'\n", setting[0], strings.ReplaceAll(setting[1], "'", "''"))
	}
	path := c.layout.settings()
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		return explainPath("write", path, err)
	}
	return os.Chmod(path, 0o644) // the server's account must read the file, whatever the umask is
}

// settings returns settings for a recorder on a shared machine: little memory, few fsyncs, every commit durable.
func (c *cluster) settings(lz4 bool) [][2]string {
	listen := ""
	if c.tcpPort != 0 {
		listen = "127.0.0.1"
	}
	compression := "on" // pglz
	toast := "pglz"
	if lz4 {
		compression, toast = "lz4", "lz4"
	}
	all := [][2]string{
		{"listen_addresses", listen},
		{"port", strconv.Itoa(c.port())},
		{"unix_socket_directories", `"` + strings.ReplaceAll(c.socketDir, `"`, `""`) + `"`},
		{"unix_socket_permissions", "0700"},
		{"password_encryption", "scram-sha-256"},
		{"shared_buffers", "128MB"},
		// JIT compilation of a query over a hundred partitions takes many times longer than the query itself.
		{"jit", "off"},
		// A query takes four locks for each day that it reads. With the default of 64, the third one over five years fails.
		{"max_locks_per_transaction", "256"},
		// An upgrade may replace this library while the server runs. The server could not load the new file, so it loads the library once
		// at its start, and new sessions inherit it.
		{"shared_preload_libraries", "plpgsql"},
		{"max_wal_size", "2GB"}, // fewer full-page images; crash recovery stays within seconds
		{"checkpoint_timeout", "15min"},
		{"wal_compression", compression},
		{"default_toast_compression", toast},
		{"synchronous_commit", "on"},
		{"timezone", "UTC"},
		{"log_timezone", "UTC"},
		{"log_line_prefix", "%m [%p] %u@%d "},
		{"logging_collector", "on"}, // a week of logs, so that they stay bounded
		{"log_directory", c.layout.logs()},
		{"log_filename", "server-%a.log"},
		{"log_rotation_age", "1d"},
		{"log_rotation_size", "0"},
		{"log_truncate_on_rotation", "on"},
	}
	if c.throwaway {
		all = append(all, [][2]string{{"fsync", "off"}, {"full_page_writes", "off"}, {"max_wal_size", "512MB"},
			{"max_connections", "400"}}...)
	}
	return all
}

// supportsLZ4 reports whether the binaries were built with lz4, which depends on the package. It passes no configuration file, because the
// settings are not written yet.
func (c *cluster) supportsLZ4(ctx context.Context) bool {
	return c.programs.command(ctx, "postgres", "-D", c.layout.data(), "-C", "default_toast_compression",
		"-c", "config_file="+os.DevNull, "-c", "default_toast_compression=lz4").Run() == nil
}

func (c *cluster) port() int {
	if c.tcpPort != 0 {
		return c.tcpPort
	}
	return defaultPort
}
