package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Contents is the content of a spool's folder.
type Contents struct {
	Bytes int64    `json:"bytes"`           // of the segments that are in use
	Aside []string `json:"aside,omitempty"` // folders with unusable segments, oldest first
}

// Inspect returns the content of a folder, even if a process has it open. A missing folder counts as empty.
func Inspect(dir string) (Contents, error) {
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
			// If the segment is drained meanwhile, it holds nothing.
			if info, err := entry.Info(); err == nil {
				c.Bytes += info.Size()
			}
		}
	}
	return c, nil
}
