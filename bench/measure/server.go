package measure

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/kuberewind/kuberewind/internal/embedded"
)

// A Server is a PostgreSQL that is there for as long as something is measured on it.
type Server struct {
	URL string
	PID int // of its main process
}

// stopPatience bounds how long a server may take to stop, also after an interrupt.
const stopPatience = time.Minute

// OnServer runs something on a PostgreSQL of its own under a folder, with the settings of the embedded one, and removes it. One that is
// durable waits for its disk at each commit; where only reading is measured, it need not.
func OnServer(ctx context.Context, parent string, durable bool, run func(*Server) error) (err error) {
	dir, err := os.MkdirTemp(parent, "kuberewind-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil { // as root the server runs under another account
		return err
	}
	server, err := embedded.Start(ctx, embedded.Options{DataDir: filepath.Join(dir, "postgres"), Throwaway: !durable})
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
		defer cancel()
		err = errors.Join(err, server.Stop(stopping))
	}()
	return run(&Server{URL: server.URL(), PID: server.PID()})
}
