package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Contents is what lies in a spool's folder.
type Contents struct {
	Bytes int64    `json:"bytes"`           // of the segments that are in use
	Aside []string `json:"aside,omitempty"` // folders with what could not be used, oldest first
}

// Look says what lies in a folder, whoever has it open. One that is not there holds nothing.
func Look(dir string) (Contents, error) {
	var c Contents
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("spool: %w", err)
	}
	for _, entry := range entries {
		switch {
		case entry.IsDir() && strings.HasPrefix(entry.Name(), AsidePrefix):
			c.Aside = append(c.Aside, filepath.Join(dir, entry.Name()))
		case strings.HasSuffix(entry.Name(), suffix):
			// One that is drained meanwhile holds nothing.
			if info, err := entry.Info(); err == nil {
				c.Bytes += info.Size()
			}
		}
	}
	return c, nil
}
