package spool

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// AsidePrefix begins the names of the folders for unusable segments.
const AsidePrefix = "aside-"

// aside keeps unusable segments in a folder of their own.
type aside struct {
	dir      string // of the spool
	readOnly bool
	folder   string // empty: nothing was set aside
}

func (a *aside) move(segments []*segment) error {
	if err := a.make(); err != nil {
		return err
	}
	for _, segment := range segments {
		if err := os.Rename(segment.path, filepath.Join(a.folder, filepath.Base(segment.path))); err != nil {
			return err
		}
	}
	return nil
}

// copy keeps a copy of a damaged segment. Its beginning stays in use.
func (a *aside) copy(segment *segment) error {
	if err := a.make(); err != nil {
		return err
	}
	data, err := os.ReadFile(segment.path)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.folder, filepath.Base(segment.path)), data, 0o600)
}

func (a *aside) make() (err error) {
	if a.readOnly {
		return syscall.EROFS
	}
	if a.folder == "" {
		a.folder, err = os.MkdirTemp(a.dir, AsidePrefix+time.Now().UTC().Format("20060102T150405Z")+"-")
	}
	return err
}
