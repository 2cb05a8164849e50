package main

import (
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// documentedPort is the port that docs/connect.md opens. A test replaces it by a free port.
const documentedPort = "5433"

// runDocumented runs the Nth block of shell commands of a page, as if a reader pasted it.
func (s *scene) runDocumented(ts *testscript.TestScript, args []string) {
	text, err := os.ReadFile("../../docs/" + args[0])
	ts.Check(err)
	blocks := shellBlock.FindAllStringSubmatch(string(text), -1)
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	if n < 1 || n > len(blocks) {
		ts.Fatalf("%s has %d blocks of shell commands", args[0], len(blocks))
	}
	if s.port == "" {
		s.port = freePort(ts)
	}
	ts.Check(ts.Exec("sh", "-e", "-c", strings.ReplaceAll(blocks[n-1][1], documentedPort, s.port)))
}

// freePort returns a port on which no process listens at the moment.
func freePort(ts *testscript.TestScript) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	ts.Check(err)
	ts.Check(listener.Close())
	return port
}
