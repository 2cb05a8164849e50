// Command test-times measures where the time of the tests goes.
//
//	test-times run FILE COMMAND...   runs a command that runs `go test -json`, keeps what it prints in FILE, prints the table
//	test-times exec BINARY ARG...    runs one test binary and adds its CPU seconds to its output; it is for `go test -exec`
//	test-times table FILE            prints the table of an earlier run
//	test-times page FILE PAGE        writes the top of that table between the markers of a Markdown page
//
// # What is counted
//
// Wall seconds are as `go test -json` reports them. CPU seconds of a package are user and system time of its test binary and of
// every process that ended below it. The kernel counts processes, so a test alone has no CPU seconds. PostgreSQL's servers are
// daemons: no process waits for them, so the `time` of a shell does not count them. On Linux this program adopts them, and shows their
// time in a separate column. The last rows show the time of building, and of the whole run.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

var errUsage = errors.New("usage: test-times run FILE COMMAND... | exec BINARY ARG... | table FILE | page FILE PAGE")

func main() {
	code, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test-times:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(args []string, out io.Writer) (code int, err error) {
	if len(args) < 2 {
		return 2, errUsage
	}
	switch command, rest := args[0], args[1:]; {
	case command == "exec":
		return execute(rest)
	case command == "run" && len(rest) > 1:
		return measure(rest[0], rest[1:], out)
	case command == "table" && len(rest) == 1:
		return 0, printFile(rest[0], out)
	case command == "page" && len(rest) == 2:
		return 0, writePage(rest[0], rest[1])
	}
	return 2, errUsage
}

func printFile(path string, out io.Writer) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	r, err := read(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return r.print(out)
}
