package embedded

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldestMajor is the oldest major version of PostgreSQL with which the record is tested.
const oldestMajor = 15

// binaryPlaces are the directories in which packages install the server's binaries. They are often not on PATH.
var binaryPlaces = []string{
	"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
	"/usr/pgsql-*/bin",          // RPM of the PostgreSQL project
	"/usr/libexec/postgresql*",  // Alpine
	"/usr/local/pgsql/bin",      // built from source
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
	"/opt/local/lib/postgresql*/bin", // MacPorts
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

var serverPrograms = []string{"postgres", "initdb", "pg_ctl"}

// binaries are the programs of one version of PostgreSQL.
type binaries struct {
	dir     string
	major   int
	version string
}

func (b binaries) program(name string) string { return filepath.Join(b.dir, name) }

// finder looks for binaries that the account can run.
type finder struct {
	account account
	workDir string   // the account must be able to enter it, too, so probe runs there
	named   string   // Options.BinDir
	places  []string // globs
}

// find returns the newest binaries of the wanted major version (0: any supported one). ok is false if there are none. If the options name
// a directory, find uses only that one, and returns an error if its binaries cannot be used.
func (f finder) find(ctx context.Context, want int) (found binaries, ok bool, err error) {
	if f.named != "" {
		found, err := f.probe(ctx, f.named)
		if err == nil && want != 0 && found.major != want {
			err = fmt.Errorf("it has PostgreSQL %s, and the data were made by PostgreSQL %d: name the binaries of that "+
				"version, or name no directory and let the program find them", found.version, want)
		}
		if err == nil && found.major < oldestMajor {
			err = fmt.Errorf("it has PostgreSQL %s, and %d is the oldest that is supported", found.version, oldestMajor)
		}
		if err != nil {
			return binaries{}, false, fmt.Errorf("PostgreSQL binaries in %s: %w", f.named, err)
		}
		return found, true, nil
	}
	var usable []binaries
	for _, dir := range f.candidates(ctx) {
		b, err := f.probe(ctx, dir)
		if err == nil && b.major >= oldestMajor && (want == 0 || b.major == want) {
			usable = append(usable, b)
		}
	}
	if len(usable) == 0 {
		return binaries{}, false, ctx.Err()
	}
	newest := slices.MaxFunc(usable, func(a, b binaries) int { return compareVersions(a.version, b.version) })
	return newest, true, nil
}

// candidates returns the directories that hold the server's programs, each once, and those on PATH first.
func (f finder) candidates(ctx context.Context) []string {
	var dirs []string
	for _, name := range []string{"postgres", "pg_ctl"} {
		if path, err := exec.LookPath(name); err == nil {
			if target, err := filepath.EvalSymlinks(path); err == nil {
				dirs = append(dirs, filepath.Dir(target))
			}
		}
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, place := range f.places {
		matches, _ := filepath.Glob(place) // the only error is that of a bad pattern
		dirs = append(dirs, matches...)
	}
	var unique []string
	for _, dir := range dirs {
		if !slices.Contains(unique, dir) && hasPrograms(dir) == nil {
			unique = append(unique, dir)
		}
	}
	return unique
}

func hasPrograms(dir string) error {
	for _, name := range serverPrograms {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// probe runs the server binary as the account, and returns its version. The account may be unable to run the binary or to enter a directory
// above it.
func (f finder) probe(ctx context.Context, dir string) (binaries, error) {
	if err := hasPrograms(dir); err != nil {
		return binaries{}, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version")
	cmd.Dir = f.workDir
	cmd.SysProcAttr = f.account.attributes()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return binaries{}, f.explainProbe(dir, err, out)
	}
	version, major, err := parseVersion(string(out))
	return binaries{dir: dir, major: major, version: version}, err
}

func (f finder) explainProbe(dir string, err error, out []byte) error {
	if barrier := f.account.barrier(dir); barrier != "" {
		return fmt.Errorf("user %s, who runs the server, cannot enter %s: %w", f.account.name, barrier, err)
	}
	return fmt.Errorf("run as %s: %w %s", f.account.name, err, strings.TrimSpace(string(out)))
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d+)[^ \n]*)`)

func parseVersion(text string) (version string, major int, err error) {
	match := versionPattern.FindStringSubmatch(text)
	if match == nil {
		return "", 0, fmt.Errorf("%q is not a version of PostgreSQL", strings.TrimSpace(text))
	}
	major, err = strconv.Atoi(match[2])
	return match[1], major, err
}

var numberPattern = regexp.MustCompile(`\d+`)

// compareVersions compares the numbers in two versions. It does not know that a beta comes before its release.
func compareVersions(a, b string) int {
	as, bs := numberPattern.FindAllString(a, -1), numberPattern.FindAllString(b, -1)
	return slices.CompareFunc(as, bs, func(x, y string) int {
		xn, _ := strconv.Atoi(x)
		yn, _ := strconv.Atoi(y)
		return cmp.Compare(xn, yn)
	})
}
