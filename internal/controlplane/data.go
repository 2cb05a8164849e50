package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// SavedData is a copy of etcd's data as it was at one instant. It goes with the control plane's folder.
type SavedData struct{ dir string }

// SaveData copies the data as it is now. Meanwhile etcd stands still, for up to a second or so, with its connections open. The
// copy is the state that a crash would produce. etcd can start from it by design.
func (e *Etcd) SaveData() (*SavedData, error) {
	dir, err := os.MkdirTemp(e.dir, "etcd-saved-")
	if err != nil {
		return nil, err
	}
	err = e.whileRunning("saving the data of", func(p *process) error {
		if err := p.pause(); err != nil {
			return err
		}
		return errors.Join(copyTree(filepath.Join(dir, "data"), e.dataDir), p.signal(syscall.SIGCONT))
	})
	return &SavedData{dir: filepath.Join(dir, "data")}, err
}

// NoData is what an etcd has that never ran: restored, it makes another cluster at the same addresses.
func (e *Etcd) NoData() (*SavedData, error) {
	dir, err := os.MkdirTemp(e.dir, "etcd-empty-")
	return &SavedData{dir: dir}, err
}

// RestoreData kills etcd, puts the saved data in the place of its own and starts it. Revisions go back, and will be given again
// to other writes. API servers do not learn of it, as in a careless restore, and keep serving their watch caches. For an
// orderly restore, restart them, as the manual of etcd says. Saved data can be restored more than once.
func (e *Etcd) RestoreData(ctx context.Context, saved *SavedData) error {
	if err := e.Kill(); err != nil {
		return err
	}
	if err := os.RemoveAll(e.dataDir); err != nil {
		return err
	}
	if err := copyTree(e.dataDir, saved.dir); err != nil {
		return fmt.Errorf("restoring the data of etcd: %w", err)
	}
	return e.Start(ctx)
}

// copyTree copies a folder for its owner alone: etcd complains about folders that others may read.
func copyTree(to, from string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(to, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
}
