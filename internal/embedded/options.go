package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// BinDirEnv is the environment variable that sets Options.BinDir if that is empty.
const BinDirEnv = "KUBEREWIND_POSTGRES_BIN"

// Options name the directory of the server and its binaries. The zero value is usable.
type Options struct {
	// DataDir is the directory of the server. Start makes it if it does not exist. Default: /var/lib/kuberewind/postgres as root, else
	// kuberewind/postgres below $XDG_DATA_HOME or ~/.local/share.
	DataDir string
	// BinDir holds postgres, initdb and pg_ctl. Default: found on the machine, else fetched.
	BinDir string
	// Port makes the server listen on this TCP port of 127.0.0.1 as well. Default: the unix socket only.
	Port int
	// Throwaway makes the server faster, but a crash of the machine can destroy the data. It is for tests.
	Throwaway bool
	// Logger logs starts, stops and long waits. Default: none.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.BinDir == "" {
		o.BinDir = os.Getenv(BinDirEnv)
	}
	if o.Port < 0 || o.Port > 65535 {
		return o, fmt.Errorf("port %d of the embedded PostgreSQL is not between 0 (none) and 65535", o.Port)
	}
	if o.DataDir == "" {
		dir, err := defaultDataDir(os.Geteuid())
		if err != nil {
			return o, err
		}
		o.DataDir = dir
	}
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return o, fmt.Errorf("data directory %q of the embedded PostgreSQL: %w", o.DataDir, err)
	}
	o.DataDir = dir
	return o, nil
}

func defaultDataDir(euid int) (string, error) {
	if euid == 0 {
		return "/var/lib/kuberewind/postgres", nil
	}
	if base := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "kuberewind", "postgres"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("no place for the embedded PostgreSQL: neither HOME nor XDG_DATA_HOME is set; " +
			"set one of them, name a data directory, or give the URL of a running server")
	}
	return filepath.Join(home, ".local", "share", "kuberewind", "postgres"), nil
}
