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

// scene holds the state of a script, in addition to its files.
type scene struct {
	testing.TB
	program   string // its path
	database  *pgtest.Database
	files     *pgcopy.Copy
	port      string // see runDocumented
	processes map[string]*process
}

type sceneKey struct{}

// commands are the commands of the scripts, in addition to testscript's own.
var commands = map[string]func(*testscript.TestScript, bool, []string){
	// cluster: sets variables for the shared control plane. KUBECONFIG is the administrator's kubeconfig. LIMITED is the kubeconfig of a user
	// without rights. ADDRESS is the address of the API server. KUBECTL is the path of kubectl.
	"cluster": command("", 0, (*scene).useCluster),
	// database: sets RECORDER_DATABASE to an empty database that only this script uses.
	"database": command("", 0, (*scene).useDatabase),
	// login VARIABLE [role…]: sets the variable to the URL of a login that has the rights of the roles and no others.
	"login": command("VARIABLE [role…]", 1, (*scene).makeLogin),
	// break: the database cuts its sessions and refuses new ones. mend: it accepts sessions again.
	"break": command("", 0, (*scene).breakDatabase),
	"mend":  command("", 0, (*scene).mendDatabase),
	// copied: the embedded database runs from copies of PostgreSQL's files. upgraded: new files replace these copies.
	"copied":   command("", 0, (*scene).copyPostgres),
	"upgraded": command("", 0, (*scene).upgradePostgres),
	// versions: sets old and new, as docs/upgrade.md names the programs of two versions of PostgreSQL, to those of the running server.
	"versions": command("", 0, (*scene).setVersions),
	// documented PAGE N: runs the Nth block of shell commands of a page of docs.
	"documented": command("PAGE N", 2, (*scene).runDocumented),
	// exits CODE argument…: runs the program, which must end with this code.
	"exits": command("CODE argument…", 1, (*scene).exits),
	// recorded CONDITION: waits until a row of deltas meets this SQL condition.
	"recorded": command("CONDITION", 1, (*scene).recorded),
	// start NAME argument…: starts the program in the background. It is killed when the script ends.
	"start": command("NAME argument…", 1, (*scene).start),
	// await NAME regexp: waits until the program has written a matching line to stdout or stderr.
	"await": command("NAME regexp", 2, (*scene).await),
	// signal NAME INT|TERM|KILL: sends the signal to the program.
	"signal": command("NAME INT|TERM|KILL", 2, (*scene).signal),
	// ended NAME CODE: waits until the program ends, which must be with this code. The code of a signal is 128 plus its number.
	// The output is in NAME.log then.
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

// environment returns the variables of the script that the program reads.
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
		ts.Fatalf("no program was started with the name %s", name)
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
