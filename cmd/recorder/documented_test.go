package main

import (
	"net"
	"os"
	"path/filepath"
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

// setVersions skips the script if the machine has only the server's programs, as the downloaded ones are.
func (s *scene) setVersions(ts *testscript.TestScript, _ []string) {
	ts.Check(ts.Exec(programName, "psql", "--", "-At", "-c", `SELECT setting FROM pg_config WHERE name = 'BINDIR'`))
	bin := strings.TrimSpace(ts.ReadFile("stdout"))
	if _, err := os.Stat(filepath.Join(bin, "pg_upgrade")); err != nil {
		s.Skip("PostgreSQL has no pg_upgrade here: ", err)
	}
	ts.Setenv("old", bin)
	ts.Setenv("new", bin)
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
