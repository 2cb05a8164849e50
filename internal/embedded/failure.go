package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// remedies map words in PostgreSQL's log, or in errors of the operating system, to advice. The first match applies.
var remedies = []struct{ words, advice string }{
	{"No space left on device", "make room on the file system of %s"},
	{"Disk quota exceeded", "make room in the quota of the file system of %s"},
	{"Read-only file system", "%s is on a file system that is mounted read-only: remount it, or choose another data directory"},
	{"Address already in use", "another program listens on the port: choose another port for %s, or none"},
	{"incompatible with server", "%s was made by another build of PostgreSQL: name the binaries that made it"},
	{"has wrong ownership", "give %s to the user who runs the server (chown -R)"},
	{"has invalid permissions", "set the mode of the data directory in %s to 0700"},
	{"Permission denied", "give the user who runs the server access to %s, or choose another data directory"},
	{"pre-existing shared memory block", "another PostgreSQL still uses %s: stop it first"},
	{"could not create shared memory segment", "the machine has no shared memory left for %s: see its limits (ipcs, /dev/shm)"},
	{"out of memory", "the machine has no memory left for the server of %s"},
}

func remedy(text, dir string) string {
	for _, r := range remedies {
		if strings.Contains(strings.ToLower(text), strings.ToLower(r.words)) {
			return fmt.Sprintf(r.advice, dir)
		}
	}
	return ""
}

// explainPath adds the operation and the path to an error. If a remedy is known, it adds that, too.
func explainPath(doing, path string, err error) error {
	for _, known := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EPERM} {
		if !errors.Is(err, known) {
			continue
		}
		if advice := remedy(known.Error(), path); advice != "" {
			return fmt.Errorf("%s %s: %w: %s", doing, path, err, advice)
		}
	}
	return fmt.Errorf("%s %s: %w", doing, path, err)
}

// explainOutput adds the output of a program, or the log of the server, to an error. If a remedy is known, it adds that, too.
func (l layout) explainOutput(err error, output string) error {
	output = strings.TrimSpace(output)
	if output == "" {
		return err
	}
	if advice := remedy(output, l.dir); advice != "" {
		err = fmt.Errorf("%w: %s", err, advice)
	}
	return fmt.Errorf("%w\n--- PostgreSQL said ---\n%s", err, output)
}

// maxTail is the number of bytes at the end of each log file that an error contains.
const maxTail = 2000

// logTail returns the ends of the log files that were written since a time, oldest file first.
func (l layout) logTail(since time.Time) string {
	paths, _ := filepath.Glob(filepath.Join(l.logs(), "*.log")) // the only error is that of a bad pattern
	type file struct {
		path     string
		modified time.Time
	}
	var files []file
	for _, path := range paths {
		// A file system's clock may be some milliseconds behind.
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.ModTime().After(since.Add(-time.Second)) {
			files = append(files, file{path, info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return a.modified.Compare(b.modified) })
	var tail strings.Builder
	for _, f := range files {
		tail.WriteString(readTail(f.path))
	}
	return tail.String()
}

// readTail returns whole lines from the end of a file. If the file cannot be read, it returns "": the lines only explain an error.
func readTail(path string) string {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // opened for reading only
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	start := max(0, info.Size()-maxTail)
	text, err := io.ReadAll(io.NewSectionReader(file, start, maxTail))
	if err != nil {
		return ""
	}
	if start > 0 {
		_, after, _ := strings.Cut(string(text), "\n")
		return after
	}
	return string(text)
}
