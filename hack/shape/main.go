// Command shape checks the sizes of types and of files in the repository's Go code:
//
//   - a type has at most 25 methods;
//   - a struct with methods has at most 15 fields: a struct without methods is plain data, of any size;
//   - a file has at most 400 lines, and a test file 600, unless it is generated.
//
// It prints each type and file that is over a limit, and exits with 1 if there are any. An embedded struct is one field. A method in
// a test file counts only for a type of a test file, because it is no part of the program.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// errLimits is returned if something is over a limit. The output has named it.
var errLimits = errors.New("some types or files are too large; divide them")

func main() {
	flag.Parse()
	if err := run(os.Stdout, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

// run checks the files; without names, all Go files of the repository.
func run(out io.Writer, files []string) error {
	if len(files) == 0 {
		var err error
		if files, err = trackedFiles(); err != nil {
			return err
		}
	}
	c := newCode()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := c.add(file, text); err != nil {
			return err
		}
	}
	findings := c.findings()
	for _, finding := range findings {
		fmt.Fprintln(out, finding)
	}
	if len(findings) > 0 {
		return errLimits
	}
	return nil
}

// trackedFiles returns the Go files that git tracks, and new ones that git does not ignore.
func trackedFiles() ([]string, error) {
	output, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository: %w", err)
	}
	return slices.DeleteFunc(strings.Fields(string(output)), func(file string) bool {
		_, err := os.Stat(file)
		return err != nil || copied(file)
	}), nil
}

// copied reports whether the file is in a folder of other projects' code.
func copied(file string) bool {
	folders := strings.Split(file, "/")
	return slices.Contains(folders, "vendor") || slices.Contains(folders, "node_modules")
}
