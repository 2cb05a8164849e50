// Command prose checks the sentences of the project's texts: their length, and words for which there is a plainer one. The texts
// are Markdown, comments of Go and SQL, help texts, log and error messages, and names of tests. Tables, code, headings and lists of
// flags are not sentences.
//
//	prose [FILE...]            prints every file: its sentences, their median, 90th percentile, and the longest three
//	prose -check [FILE...]     prints the files that break a limit or have refused words, and exits with 1 if there are any
//
// Without names, it reads all texts of the repository, except those in folders named testdata.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// errLimits is returned if a file breaks a limit or has refused words. The report has named the file.
var errLimits = errors.New("some texts are not plain enough")

func main() {
	limits := flag.Bool("check", false, "fail if a file breaks a limit")
	flag.Parse()
	if err := run(os.Stdout, *limits, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, limits bool, files []string) error {
	if len(files) == 0 {
		var err error
		if files, err = trackedFiles(); err != nil {
			return err
		}
	}
	if limits {
		return check(out, files)
	}
	return printAll(out, files)
}

// printAll prints a report of each file that has sentences.
func printAll(out io.Writer, files []string) error {
	for _, file := range files {
		r, err := measure(file)
		if err != nil {
			return err
		}
		if r.sentences > 0 {
			r.print(out)
		}
	}
	return nil
}

// check prints the files that break a limit.
func check(out io.Writer, files []string) error {
	var result error
	for _, file := range files {
		r, err := measure(file)
		if err != nil {
			return err
		}
		if broken := r.broken(); len(broken) > 0 {
			result = errLimits
			r.print(out)
			fmt.Fprintf(out, "  %s: rewrite its sentences\n", strings.Join(broken, "; "))
		}
	}
	return result
}

// trackedFiles returns the texts that git tracks, and new ones that git does not ignore.
func trackedFiles() ([]string, error) {
	output, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "*.md", "*.go", "*.sql").Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository: %w", err)
	}
	var files []string
	for _, file := range strings.Fields(string(output)) {
		if _, err := os.Stat(file); err == nil && !exempt(file) {
			files = append(files, file)
		}
	}
	return files, nil
}

// exempt reports whether the file is in a folder testdata. Other projects may have written it.
func exempt(file string) bool { return slices.Contains(strings.Split(path.Dir(file), "/"), "testdata") }
