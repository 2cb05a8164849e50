// Package badinput_test shows the recorder what it should never see: an API server that lies or breaks down, a database that
// breaks down, objects of every odd form. Each test wants a clear error, and then nothing lost of what the server served.
//
// The API server is a double, because a real one cannot be made to lie; the database is real.
package badinput_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/migrations"
)

func TestMain(m *testing.M) {
	// The surroundings must not decide which cluster is recorded, nor how.
	for _, name := range []string{"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"} {
		os.Unsetenv(name)
	}
	// The tests wait far more than they compute: as many as there are may run at once, unless somebody asks for less.
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "64")
	}
	pgtest.Main(withProgram{m})
}

// withProgram has the recorder as it is shipped, for as long as the tests run.
type withProgram struct{ *testing.M }

// Run implements goleak.TestingM.
func (w withProgram) Run() int {
	dir, err := os.MkdirTemp("", "kuberewind-badinput-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	recorder.path = filepath.Join(dir, "recorder")
	if out, err := exec.Command("go", "build", "-o", recorder.path, "../../cmd/recorder").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the recorder: %v\n%s", err, out)
		return 1
	}
	return w.M.Run()
}

// migrated is the setup of a database that holds an empty record.
func migrated(ctx context.Context, conn *pgx.Conn) error {
	if err := migrations.Up(ctx, conn.Config().ConnString(), slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	_, err := migrations.Roles(ctx, conn)
	return err
}
