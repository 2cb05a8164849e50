// Command prose measures how long the sentences of the project's texts are: Markdown, comments of Go and SQL, help texts, log
// and error messages. Tables, code, headings and lists of flags are not sentences.
//
//	prose [FILE...]         prints every file: its sentences, their median, 90th percentile, and the longest three
//	prose -check LIST       prints the files that break a limit, and exits with 1 if there are any
//
// The list names the files that still break a limit, one on a line. It only shrinks: a line whose file keeps the limits, or is
// gone, is an error. Folders named testdata are not read.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// errLimits says that a file breaks a limit. The report has named it.
var errLimits = errors.New("sentences are too long, or the list is")

func main() {
	list := flag.String("check", "", "file with the list of files that still break a limit")
	flag.Parse()
	err := run(os.Stdout, *list, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, list string, files []string) error {
	if list == "" && len(files) > 0 {
		return printAll(out, files)
	}
	tracked, err := trackedFiles()
	if err != nil {
		return err
	}
	if list == "" {
		return printAll(out, tracked)
	}
	unfinished, err := readList(list)
	if err != nil {
		return err
	}
	return check(out, tracked, unfinished)
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

// check prints the files that break a limit and are not listed, and the lines of the list that have to go.
func check(out io.Writer, files []string, unfinished map[string]bool) error {
	var result error
	for _, file := range files {
		r, err := measure(file)
		if err != nil {
			return err
		}
		broken := r.broken()
		if len(broken) > 0 && !unfinished[file] {
			result = errLimits
			r.print(out)
			fmt.Fprintf(out, "  %s: shorten its sentences\n", strings.Join(broken, "; "))
		}
		if len(broken) > 0 {
			delete(unfinished, file)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(unfinished)) {
		result = errLimits
		fmt.Fprintf(out, "%s keeps the limits, or is gone: delete its line\n", file)
	}
	return result
}

// trackedFiles are the texts that git knows, and those that it would take.
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

// exempt tells the input of tests, which others may have written.
func exempt(file string) bool { return slices.Contains(strings.Split(path.Dir(file), "/"), "testdata") }

// readList returns the files that the list names.
func readList(list string) (map[string]bool, error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			listed[line] = true
		}
	}
	return listed, nil
}
