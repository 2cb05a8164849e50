// Command prose measures how long the sentences of the project's texts are: Markdown, comments of Go and SQL, help texts, log
// and error messages. Tables, code, headings and lists of flags are not sentences.
//
//	prose [FILE...]         prints every file: its sentences, their median, 90th percentile, and the longest three
//	prose -check LIST       prints the files of the list that break a limit, and exits with 1 if there are any
//
// A line of the list is a file, a pattern of path.Match, or a directory with a slash at its end. The list only grows.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
)

// errLimits says that a file breaks a limit. The report has named it.
var errLimits = errors.New("sentences are too long")

func main() {
	list := flag.String("check", "", "file with the list of files that must keep the limits")
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
	listed, err := readList(list, tracked)
	if err != nil {
		return err
	}
	return check(out, listed)
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
			fmt.Fprintf(out, "  %s: shorten its sentences\n", strings.Join(broken, "; "))
		}
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
		if _, err := os.Stat(file); err == nil {
			files = append(files, file)
		}
	}
	return files, nil
}

// readList returns the tracked files that the list names. A line that names none is an error: the file was moved.
func readList(list string, tracked []string) ([]string, error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	var listed []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		found := matching(line, tracked)
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: %q names no file; correct the line", list, line)
		}
		listed = append(listed, found...)
	}
	return listed, nil
}

func matching(line string, tracked []string) []string {
	var found []string
	for _, file := range tracked {
		matched, _ := path.Match(line, file) // of a bad pattern nothing is found, which is reported
		if matched || strings.HasSuffix(line, "/") && strings.HasPrefix(file, line) {
			found = append(found, file)
		}
	}
	return found
}
