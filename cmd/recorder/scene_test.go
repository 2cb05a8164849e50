package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/embedded"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/pgtest/pgcopy"
)

// scene is what a script has besides its files.
type scene struct {
	testing.TB
	program   string // its path
	database  *pgtest.Database
	files     *pgcopy.Copy
	port      string // see runDocumented
	processes map[string]*process
}

type sceneKey struct{}

// commands are what the scripts can do besides testscript's own commands.
var commands = map[string]func(*testscript.TestScript, bool, []string){
	// cluster: KUBECONFIG is that of the administrator of the shared control plane, LIMITED that of a user without rights, ADDRESS
	// where its API server listens, KUBECTL the program.
	"cluster": command("", 0, (*scene).useCluster),
	// database: RECORDER_DATABASE is an empty one of the script's own.
	"database": command("", 0, (*scene).useDatabase),
	// login VARIABLE [role…]: the variable is the URL of a login that is a member of the roles and may nothing else.
	"login": command("VARIABLE [role…]", 1, (*scene).makeLogin),
	// break, mend: the database cuts its sessions and refuses new ones, or takes them again.
	"break": command("", 0, (*scene).breakDatabase),
	"mend":  command("", 0, (*scene).mendDatabase),
	// copied: the embedded database runs from copies of PostgreSQL's files. upgraded: new files take their places.
	"copied":   command("", 0, (*scene).copyPostgres),
	"upgraded": command("", 0, (*scene).upgradePostgres),
	// documented PAGE N: runs the Nth block of shell commands of a page of docs.
	"documented": command("PAGE N", 2, (*scene).runDocumented),
	// exits CODE argument…: the program ends with this code.
	"exits": command("CODE argument…", 1, (*scene).exits),
	// recorded CONDITION: deltas has a row of which this SQL condition holds, or comes to have one.
	"recorded": command("CONDITION", 1, (*scene).recorded),
	// start NAME argument…: the program runs in the background until the script ends at the latest.
	"start": command("NAME argument…", 1, (*scene).start),
	// await NAME regexp: it has written a line, to either output, that matches.
	"await": command("NAME regexp", 2, (*scene).await),
	// signal NAME INT|TERM|KILL
	"signal": command("NAME INT|TERM|KILL", 2, (*scene).signal),
	// ended NAME CODE: it ends with this code, 128 and the signal's number where that ended it. Its output is in NAME.log.
	"ended": command("NAME CODE", 2, (*scene).ended),
}

func command(usage string, least int, do func(*scene, *testscript.TestScript, []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, negated bool, args []string) {
		if negated || len(args) < least {
			ts.Fatalf("usage: %s", usage)
		}
		do(ts.Value(sceneKey{}).(*scene), ts, args)
	}
}

func (s *scene) useCluster(ts *testscript.TestScript, _ []string) {
	plane, err := shared.get()
	ts.Check(err)
	for variable, user := range map[string]string{"KUBECONFIG": controlplane.AdminName, "LIMITED": limitedUser} {
		path, err := plane.APIServer.Kubeconfig(user)
		ts.Check(err)
		ts.Setenv(variable, path)
	}
	ts.Setenv("KUBECTL", plane.Kubectl())
	ts.Setenv("ADDRESS", strings.TrimPrefix(plane.APIServer.URL(), "https://"))
}

func (s *scene) useDatabase(ts *testscript.TestScript, _ []string) {
	s.database = pgtest.New(s, nil)
	ts.Setenv("RECORDER_DATABASE", s.database.URL())
}

func (s *scene) makeLogin(ts *testscript.TestScript, args []string) {
	ts.Setenv(args[0], s.database.Login(s, args[1:]...))
}

func (s *scene) breakDatabase(*testscript.TestScript, []string) {
	s.database.RefuseConnections(s)
	s.database.CutConnections(s)
}

func (s *scene) mendDatabase(*testscript.TestScript, []string) { s.database.AllowConnections(s) }

func (s *scene) copyPostgres(ts *testscript.TestScript, _ []string) {
	if os.Getenv(pgtest.URLEnv) != "" {
		s.Skip("the files of the PostgreSQL in " + pgtest.URLEnv + " cannot be copied")
	}
	s.files = pgcopy.Of(s, pgtest.New(s, nil).URL(), filepath.Join(ts.Getenv("DATA"), "copy"))
	ts.Setenv(embedded.BinDirEnv, s.files.Bin)
}

func (s *scene) upgradePostgres(*testscript.TestScript, []string) { s.files.Upgrade(s) }

func (s *scene) exits(ts *testscript.TestScript, args []string) {
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(programName, args[1:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if args[0] != strconv.Itoa(code) {
		ts.Fatalf("exit code %d instead of %s", code, args[0])
	}
}

func (s *scene) recorded(ts *testscript.TestScript, args []string) {
	ts.Check(ts.Exec(programName, "psql", "--", "-c", fmt.Sprintf(`DO $$ BEGIN
WHILE NOT EXISTS (SELECT FROM kuberewind.deltas WHERE %s) LOOP COMMIT; PERFORM pg_sleep(0.05); END LOOP; END $$`, args[0])))
}

func (s *scene) start(ts *testscript.TestScript, args []string) {
	p, err := startProcess(s.program, ts.MkAbs("."), environment(ts), args[1:])
	ts.Check(err)
	s.processes[args[0]] = p
	ts.Defer(func() {
		p.kill()
		s.Logf("%s:\n%s", args[0], p.output())
	})
}

// environment is the script's, as far as the program looks at it.
func environment(ts *testscript.TestScript) []string {
	var pairs []string
	for _, name := range append(variables(), embedded.BinDirEnv, "PATH", "HOME", "XDG_CONFIG_HOME", "KUBECONFIG") {
		if value := ts.Getenv(name); value != "" {
			pairs = append(pairs, name+"="+value)
		}
	}
	return pairs
}

func (s *scene) process(ts *testscript.TestScript, name string) *process {
	p := s.processes[name]
	if p == nil {
		ts.Fatalf("nothing was started by the name of %s", name)
	}
	return p
}

func (s *scene) await(ts *testscript.TestScript, args []string) {
	ts.Check(s.process(ts, args[0]).await(args[1]))
}

func (s *scene) signal(ts *testscript.TestScript, args []string) {
	ts.Check(s.process(ts, args[0]).signal(args[1]))
}

func (s *scene) ended(ts *testscript.TestScript, args []string) {
	code, err := s.process(ts, args[0]).ended()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".log"), []byte(s.process(ts, args[0]).output()), 0o600))
	if args[1] != strconv.Itoa(code) {
		ts.Fatalf("exit code %d instead of %s", code, args[1])
	}
}
