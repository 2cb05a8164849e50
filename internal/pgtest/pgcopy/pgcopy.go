// Package pgcopy copies the PostgreSQL of this machine for tests that upgrade or break it under a running server.
package pgcopy

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A Copy is a PostgreSQL whose files the test may replace.
type Copy struct {
	Bin     string // the folder of its programs
	Library string // the library of PL/pgSQL
}

// Of copies the PostgreSQL of a running server into the folder root. The url must be that of a superuser on this
// machine.
func Of(t testing.TB, url, root string) *Copy {
	t.Helper()
	folders := ask(t, url)
	// PostgreSQL finds its folders relative to its programs, so they keep their whole paths below root.
	for _, name := range []string{"BINDIR", "PKGLIBDIR", "SHAREDIR"} {
		check(t, os.MkdirAll(filepath.Join(root, filepath.Dir(folders[name])), 0o755))
	}
	check(t, os.Symlink(folders["SHAREDIR"], filepath.Join(root, folders["SHAREDIR"])))
	bin, libraries := filepath.Join(root, folders["BINDIR"]), filepath.Join(root, folders["PKGLIBDIR"])
	for _, folder := range []string{bin, libraries} {
		check(t, os.MkdirAll(folder, 0o755))
	}
	for _, program := range []string{"postgres", "initdb", "pg_ctl"} {
		copyFile(t, filepath.Join(folders["BINDIR"], program), filepath.Join(bin, program))
	}
	c := &Copy{Bin: bin}
	entries, err := os.ReadDir(folders["PKGLIBDIR"])
	check(t, err)
	for _, entry := range entries {
		from, to := filepath.Join(folders["PKGLIBDIR"], entry.Name()), filepath.Join(libraries, entry.Name())
		if matches, _ := filepath.Match("plpgsql.*", entry.Name()); matches {
			c.Library = to
			copyFile(t, from, to)
		} else {
			check(t, os.Symlink(from, to))
		}
	}
	return c
}

func ask(t testing.TB, url string) map[string]string {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	check(t, err)
	rows, err := conn.Query(ctx, `SELECT name, setting FROM pg_config()`)
	check(t, err)
	folders := map[string]string{}
	var name, setting string
	_, err = pgx.ForEachRow(rows, []any{&name, &setting}, func() error { folders[name] = setting; return nil })
	check(t, err)
	check(t, conn.Close(ctx))
	return folders
}

// Upgrade replaces the files of the program and the library, as a package manager does.
func (c *Copy) Upgrade(t testing.TB) {
	t.Helper()
	for _, path := range []string{filepath.Join(c.Bin, "postgres"), c.Library} {
		copyFile(t, path, path+".new")
		check(t, os.Rename(path+".new", path))
	}
}

// BreakLibrary replaces the library by one that no server can load.
func (c *Copy) BreakLibrary(t testing.TB) {
	t.Helper()
	check(t, os.WriteFile(c.Library+".new", []byte("of another version"), 0o644))
	check(t, os.Rename(c.Library, c.Library+".old"))
	check(t, os.Rename(c.Library+".new", c.Library))
}

// MendLibrary undoes BreakLibrary.
func (c *Copy) MendLibrary(t testing.TB) {
	t.Helper()
	check(t, os.Rename(c.Library+".old", c.Library))
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	source, err := os.Open(from)
	check(t, err)
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	check(t, err)
	_, err = io.Copy(target, source)
	check(t, err)
	check(t, source.Close())
	check(t, target.Close())
	check(t, os.Chmod(to, 0o755)) // independent of the umask: another account runs the server
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("copy PostgreSQL: %v", err)
	}
}
