package embedded

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADirectoryThatTheServerCannotEnterIsNamed(t *testing.T) {
	t.Parallel()
	asRoot(t)
	home := newDir(t)
	require.NoError(t, os.Mkdir(home, 0o700))
	_, err := Start(testContext(t), options(t, filepath.Join(home, "data", "postgres")))
	require.ErrorContains(t, err, "cannot enter "+home+": choose a data directory outside it")
}

func TestDataOfAnotherVersionAreRefusedAndNotChanged(t *testing.T) {
	t.Setenv(BinDirEnv, "")
	dir := filledDir(t)
	server := start(t, options(t, dir))
	stop(t, server)
	version := filepath.Join(dir, "data", "PG_VERSION")
	require.NoError(t, os.WriteFile(version, []byte("9\n"), 0o600))

	_, err := Start(testContext(t), options(t, dir))
	require.ErrorContains(t, err, "were made by PostgreSQL 9")
	require.ErrorContains(t, err, "apt-get install postgresql-9")
	require.ErrorContains(t, err, "the data were not changed")
	o := options(t, dir)
	o.BinDir = server.programs.bin.dir
	_, err = Start(testContext(t), o)
	require.ErrorContains(t, err, "it has PostgreSQL "+server.programs.bin.version+", and the data were made by PostgreSQL 9")

	require.NoError(t, os.WriteFile(version, []byte(server.programs.bin.version[:2]+"\n"), 0o600))
	require.Equal(t, "1", query(t, start(t, options(t, dir)).URL(), "SELECT '1'"))
}

func TestADirectoryThatThisPackageDidNotMakeIsRefused(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o700))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chmod(dir, 0o711))
		require.NoError(t, os.Chown(filepath.Join(dir, "data"), 65534, 65534))
	}
	_, err := Start(testContext(t), options(t, dir))
	require.ErrorContains(t, err, "is not a data directory of PostgreSQL")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "PG_VERSION"), []byte("15\n"), 0o600))
	_, err = Start(testContext(t), options(t, dir))
	require.ErrorContains(t, err, "is a data directory of PostgreSQL itself")
}

func TestALostOrWrongPasswordFileIsNamed(t *testing.T) {
	t.Parallel()
	dir := filledDir(t)
	server := start(t, options(t, dir))
	stop(t, server)
	path := string(server.layout.passFile())
	text, err := os.ReadFile(path)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(path, []byte("*:*:*:kuberewind:wrong\n"), 0o600))
	_, err = Start(testContext(t), options(t, dir))
	require.ErrorContains(t, err, "the password in "+path+" is not that of user kuberewind")
	requireAlive(t, dir, false)

	require.NoError(t, os.Remove(path))
	_, err = Start(testContext(t), options(t, dir))
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "restore the file")

	require.NoError(t, os.WriteFile(path, text, 0o600))
	require.Equal(t, "1", query(t, start(t, options(t, dir)).URL(), "SELECT '1'"))
}

func TestTheErrorOfAFailedStartContainsTheLogOfTheServer(t *testing.T) {
	t.Parallel()
	dir := filledDir(t)
	server := start(t, options(t, dir))
	stop(t, server)
	auto := filepath.Join(dir, "data", "postgresql.auto.conf")
	require.NoError(t, os.WriteFile(auto, []byte("shared_buffers = 'a lot'\n"), 0o600))
	_, err := Start(testContext(t), options(t, dir))
	require.ErrorContains(t, err, "did not start in "+dir)
	require.ErrorContains(t, err, `invalid value for parameter "shared_buffers": "a lot"`)
	requireAlive(t, dir, false)

	require.NoError(t, os.WriteFile(auto, nil, 0o600))
	require.NoError(t, os.Chmod(filepath.Join(dir, "data"), 0o755))
	_, err = Start(testContext(t), options(t, dir))
	require.ErrorContains(t, err, "set the mode of the data directory in "+dir+" to 0700")
}

func TestDataOfAnotherUserAreRefused(t *testing.T) {
	t.Parallel()
	asRoot(t)
	dir := filledDir(t)
	server := start(t, options(t, dir))
	stop(t, server)
	_, err := chooseAccount(12345, server.layout.data())
	require.ErrorContains(t, err, "belong to "+server.programs.account.name+", and you are uid 12345")

	require.NoError(t, os.Chown(server.layout.data(), 0, 0))
	_, err = Start(testContext(t), options(t, dir))
	require.ErrorContains(t, err, "belong to root, but PostgreSQL refuses to run as root")
}

func TestTheErrorForRootWithoutAServerAccountSaysHowToAddOne(t *testing.T) {
	t.Parallel()
	_, err := lookupServerAccount([]string{"no-such-user", "root"})
	require.ErrorContains(t, err, "useradd --system kuberewind")
}

func TestASocketDirectoryOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	require.NoError(t, os.Mkdir(dir, 0o755))
	err := makePrivate(dir, account{name: "me", uid: os.Geteuid(), gid: os.Getegid()})
	require.ErrorContains(t, err, "has to be a directory of me with mode 0700")
	link := dir + ".link"
	require.NoError(t, os.Symlink(dir, link))
	require.Error(t, makePrivate(link, account{name: "me", uid: os.Geteuid(), gid: os.Getegid()}))
}

// mount mounts a small file system at dir until the test ends.
func mount(t *testing.T, dir, size string) {
	t.Helper()
	asRoot(t)
	require.NoError(t, os.Mkdir(dir, 0o711))
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=0711,size="+size, "tmpfs", dir).CombinedOutput()
	if err != nil {
		t.Skipf("root may not mount here: %v %s", err, out)
	}
	t.Cleanup(func() {
		out, err := exec.Command("umount", "-l", dir).CombinedOutput()
		require.NoError(t, err, string(out))
	})
}

func TestAFullDiskIsNamedAndLosesNoData(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	mount(t, dir, "200m")
	server := start(t, options(t, dir))
	query(t, server.URL(), "CREATE TABLE t AS SELECT 'kept' AS v", "SELECT v FROM t")
	stop(t, server)

	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	_, err := Start(testContext(t), options(t, dir))
	require.ErrorContains(t, err, "make room on the file system of "+dir)
	requireAlive(t, dir, false)

	require.NoError(t, os.Remove(filler))
	require.Equal(t, "kept", query(t, start(t, options(t, dir)).URL(), "SELECT v FROM t"))
}

func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	for size := 1 << 20; size > 0; {
		if _, err := file.Write(make([]byte, size)); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			size /= 2
		}
	}
}

func TestAFullDiskAtTheFirstStartIsNamed(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	mount(t, dir, "4m")
	_, err := Start(testContext(t), options(t, dir))
	require.ErrorContains(t, err, "make room on the file system of "+dir)
	require.NoDirExists(t, filepath.Join(dir, "data"))
}

func TestAReadOnlyDiskIsNamed(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	mount(t, dir, "200m")
	stop(t, start(t, options(t, dir)))
	out, err := exec.Command("mount", "-o", "remount,ro", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	_, err = Start(testContext(t), options(t, dir))
	require.ErrorContains(t, err, "mounted read-only")
}

func TestMissingRightsAreNamed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root has rights everywhere")
	}
	parent := newDir(t)
	require.NoError(t, os.Mkdir(parent, 0o500))
	t.Cleanup(func() { require.NoError(t, os.Chmod(parent, 0o700)) })
	_, err := Start(testContext(t), options(t, filepath.Join(parent, "postgres")))
	require.ErrorContains(t, err, "choose another data directory")
}

func TestTheDefaultDataDirectoryFollowsTheUser(t *testing.T) {
	t.Setenv("HOME", "/home/someone")
	t.Setenv("XDG_DATA_HOME", "")
	for euid, want := range map[int]string{0: "/var/lib/kuberewind/postgres", 7: "/home/someone/.local/share/kuberewind/postgres"} {
		dir, err := defaultDataDir(euid)
		require.NoError(t, err)
		require.Equal(t, want, dir)
	}
	t.Setenv("XDG_DATA_HOME", "/data")
	dir, err := defaultDataDir(7)
	require.NoError(t, err)
	require.Equal(t, "/data/kuberewind/postgres", dir)
	t.Setenv("XDG_DATA_HOME", "relative")
	t.Setenv("HOME", "")
	_, err = defaultDataDir(7)
	require.ErrorContains(t, err, "name a data directory")
}
