package badinput_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/migrations"
)

// closedPort is an address at which nothing listens, nor will before the test ends: it is bound.
func closedPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	syscall.CloseOnExec(fd)
	t.Cleanup(func() { require.NoError(t, syscall.Close(fd)) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	address, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", address.(*syscall.SockaddrInet4).Port)
}

// mutePort takes connections and says nothing.
func mutePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// otherAuthority is the certificate of an authority that has signed nothing.
func otherAuthority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "other"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// clusters are clusters that cannot be recorded: each gives a kubeconfig, or a context of it after a comma.
var clusters = map[string]struct {
	kubeconfig func(t *testing.T) string
	args       []string
	words      []string
}{
	"no kubeconfig": {func(t *testing.T) string { return "/nowhere/config" }, nil,
		[]string{"kubeconfig /nowhere/config does not exist", "--kubeconfig"}},
	"nothing at all": {func(t *testing.T) string { return "" }, nil,
		[]string{"no cluster", ".kube/config (missing)", "service account", "--kubeconfig", "KUBECONFIG"}},
	"a malformed kubeconfig": {func(t *testing.T) string { return writeFile(t, "kubeconfig", "clusters: [\n") }, nil,
		[]string{"kubeconfig", "cannot be read", "/kubeconfig", "yaml"}},
	"a kubeconfig that is something else": {func(t *testing.T) string { return writeFile(t, "kubeconfig", loginPage) }, nil,
		[]string{"kubeconfig", "cannot be read", "/kubeconfig"}},
	"a context that does not exist": {func(t *testing.T) string { return newServer(t).kubeconfig(t) }, []string{"--context=there"},
		[]string{`context "there"`, "does not exist", "there are: here"}},
	"a certificate that is none": {func(t *testing.T) string { return writeKubeconfig(t, "https://127.0.0.1:1", []byte("not PEM")) }, nil,
		[]string{"https://127.0.0.1:1", "certificate"}},
	"connection refused": {func(t *testing.T) string { return writeKubeconfig(t, "https://"+closedPort(t), nil) }, nil,
		[]string{"https://127.0.0.1:", "connection refused", "check that the API server runs"}},
	"no answer": {func(t *testing.T) string { return writeKubeconfig(t, "https://"+mutePort(t), nil) }, nil,
		[]string{"https://127.0.0.1:", "TLS handshake timeout"}},
	"an answer that never comes": {faulty(silence), nil,
		[]string{"https://127.0.0.1:", "did not answer within 30s"}},
	"a name that does not exist": {func(t *testing.T) string { return writeKubeconfig(t, "https://nowhere.invalid", nil) }, nil,
		[]string{"nowhere.invalid", "that this is its address"}},
	"another authority": {func(t *testing.T) string { return writeKubeconfig(t, newServer(t).URL, otherAuthority(t)) }, nil,
		[]string{"https://127.0.0.1:", "certificate signed by unknown authority", "the certificate-authority of this cluster in the kubeconfig did not sign the server's certificate"}},
	"another name": {func(t *testing.T) string {
		s := newServer(t)
		text, err := os.ReadFile(s.kubeconfig(t))
		require.NoError(t, err)
		return writeFile(t, "kubeconfig", strings.Replace(string(text), "127.0.0.1", "localhost", 1))
	}, nil, []string{"https://localhost:", "certificate is valid for", "not localhost", "tls-server-name"}},
	"no TLS": {func(t *testing.T) string {
		s := httptest.NewServer(http.NotFoundHandler())
		t.Cleanup(s.Close)
		return writeKubeconfig(t, strings.Replace(s.URL, "http:", "https:", 1), nil)
	}, nil, []string{"https://127.0.0.1:", "server gave HTTP response to HTTPS client"}},
	"TLS where none is spoken": {func(t *testing.T) string {
		return writeKubeconfig(t, strings.Replace(newServer(t).URL, "https:", "http:", 1), nil)
	}, nil, []string{"127.0.0.1:", "Client sent an HTTP request to an HTTPS server"}},
	"a login page": {faulty(html), nil, []string{"200 OK", "where JSON was expected", "Sign in", "is this the address of an API server"}},
	"401":          {faulty(unauthorized), nil, []string{"namespaces (kube-system)", "Unauthorized", "does not accept the credentials", "renew"}},
	"403":          {faulty(refuse(http.StatusForbidden, "Forbidden", "namespaces is forbidden", 0)), nil, []string{"kube-system may not be read", `verbs: ["get"]`, "namespaces is forbidden"}},
	"404":          {faulty(notServed), nil, []string{"has no namespace kube-system"}},
	"500":          {faulty(refuse(http.StatusInternalServerError, "InternalError", "etcd is on fire", 0)), nil, []string{"cannot be identified", "etcd is on fire"}},
	"no identity":  {faulty(answerWith(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system"}}`)), nil, []string{"kube-system has no UID"}},
	"garbage":      {faulty(answerWith(`{"apiVersion":`)), nil, []string{"cannot be identified", "kube-system", "EOF"}},
}

// faulty is a cluster that answers the question who it is with a fault.
func faulty(answer http.HandlerFunc) func(t *testing.T) string {
	return func(t *testing.T) string {
		s := newServer(t)
		s.identity.add(always, answer)
		return s.kubeconfig(t)
	}
}

func TestAClusterThatCannotBeUsedIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, cluster := range clusters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"--database=postgres://nobody@" + closedPort(t) + "/never"}, cluster.args...)
			if kubeconfig := cluster.kubeconfig(t); kubeconfig != "" {
				args = append(args, "--kubeconfig="+kubeconfig)
			}
			recorder.refuses(t, invocation{args: args}, exitEnvironment, cluster.words...)
		})
	}
}

// databases are databases that cannot hold a record.
var databases = map[string]struct {
	url   func(t *testing.T) string
	args  []string
	words []string
}{
	"connection refused": {func(t *testing.T) string { return "postgres://me:" + password + "@" + closedPort(t) + "/record" }, nil,
		[]string{"database postgres://me:xxxxx@127.0.0.1:", "connection refused", "does PostgreSQL run there", "--database"}},
	"no answer": {func(t *testing.T) string {
		return "postgres://me:" + password + "@" + mutePort(t) + "/record?sslmode=disable"
	}, nil,
		[]string{"database postgres://me:xxxxx@127.0.0.1:", "did not answer within 10s"}},
	"a name that does not exist": {func(t *testing.T) string { return "postgres://me:" + password + "@nowhere.invalid/record" }, nil,
		[]string{"database postgres://me:xxxxx@nowhere.invalid"}},
	"a malformed URL": {func(t *testing.T) string { return "postgres://me:" + password + "@h:port/record" }, nil,
		[]string{"database"}},
	"a wrong password": {func(t *testing.T) string { return withPassword(t, pgtest.New(t, pgtest.EmptyRecord).URL(), password) }, nil,
		[]string{"database", "password authentication failed", "check the user and the password"}},
	"a database that does not exist": {func(t *testing.T) string { return strings.Replace(pgtest.New(t, nil).URL(), "/pgtest", "/nopgtest", 1) }, nil,
		[]string{"database", "does not exist", "CREATE DATABASE"}},
	"a login that may not make the schema": {func(t *testing.T) string { return pgtest.New(t, nil).Login(t) }, nil,
		[]string{"permission denied", "may create schemas"}},
	"a login that may do nothing": {func(t *testing.T) string { return pgtest.New(t, pgtest.EmptyRecord).Login(t) }, nil,
		[]string{"permission denied", migrations.WriterRole}},
	"a login that may only read": {func(t *testing.T) string { return pgtest.New(t, pgtest.EmptyRecord).Login(t, migrations.AuditorRole) }, nil,
		[]string{"permission denied", migrations.WriterRole}},
	"no schema, and none wanted": {func(t *testing.T) string { return pgtest.New(t, nil).URL() }, []string{"--migrate=false"},
		[]string{"holds no record", `"recorder migrate"`}},
	"a newer schema": {func(t *testing.T) string { return newerSchema(t) }, nil,
		[]string{"newer than this program", "version 999", "use a newer program"}},
	"a newer schema, not to be migrated": {func(t *testing.T) string { return newerSchema(t) }, []string{"--migrate=false"},
		[]string{"newer than this program", "version 999", "use a newer program"}},
	"an older schema, not to be migrated": {func(t *testing.T) string {
		db := pgtest.New(t, pgtest.EmptyRecord)
		setVersion(t, db, "110")
		return db.URL()
	}, []string{"--migrate=false"}, []string{"older than this program", "version 110", `run "recorder migrate"`}},
	"a schema of a development build": {func(t *testing.T) string {
		db := pgtest.New(t, pgtest.EmptyRecord)
		setVersion(t, db, "105")
		return db.URL()
	}, nil, []string{"a development build made this record", "it has schema 105", "begin a new record"}},
	"a read-only server": {func(t *testing.T) string {
		db := pgtest.New(t, pgtest.EmptyRecord)
		db.ReadOnly(t)
		return db.URL()
	}, nil, []string{"database postgres://", "read-only", "name the primary", "default_transaction_read_only"}},
	"a read-only server without a schema": {func(t *testing.T) string {
		db := pgtest.New(t, nil)
		db.ReadOnly(t)
		return db.URL()
	}, nil, []string{"database postgres://", "read-only", "name the primary", "default_transaction_read_only"}},
	"too many connections": {func(t *testing.T) string {
		db := pgtest.New(t, pgtest.EmptyRecord)
		login := db.Login(t, migrations.WriterRole)
		db.LimitConnections(t, 0)
		return login
	}, nil, []string{"database", "too many connections", "raise the limit"}},
	"a database that takes no connections": {func(t *testing.T) string {
		db := pgtest.New(t, pgtest.EmptyRecord)
		db.RefuseConnections(t)
		return db.URL()
	}, nil, []string{"database", "not currently accepting connections"}},
}

func withPassword(t *testing.T, address, secret string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	u.User = url.UserPassword(u.User.Username(), secret)
	return u.String()
}

// setVersion makes the schema say that it is of another version.
func setVersion(t *testing.T, db *pgtest.Database, version string) {
	t.Helper()
	db.Exec(t, "CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql AS 'SELECT "+version+"'")
}

func newerSchema(t *testing.T) string {
	t.Helper()
	db := pgtest.New(t, pgtest.EmptyRecord)
	setVersion(t, db, "999")
	return db.URL()
}

func TestADatabaseThatCannotBeUsedIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, configMaps())
			args := append([]string{"--kubeconfig=" + s.kubeconfig(t), "--database=" + database.url(t)}, database.args...)
			recorder.refuses(t, invocation{args: args}, exitEnvironment, database.words...)
		})
	}
}

func TestAFolderOrKeyThatCannotBeUsedIsNamed(t *testing.T) {
	t.Parallel()
	s := newServer(t, configMaps())
	db := pgtest.New(t, pgtest.EmptyRecord)
	args := []string{"--kubeconfig=" + s.kubeconfig(t), "--database=" + db.URL()}
	notADirectory := writeFile(t, "file", "")
	recorder.refuses(t, invocation{args: append(args, "--data-dir="+notADirectory)}, exitEnvironment,
		notADirectory, "redaction", "--redaction-key-file")
	recorder.refuses(t, invocation{args: append(args, "--redaction-key-file="+writeFile(t, "key", "short"))}, exitEnvironment,
		"redaction key", "hexadecimal digits")
}

func TestARecorderWithAnotherKeyIsRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, configMaps())
	db := pgtest.New(t, pgtest.EmptyRecord)
	begin(t, s, db.URL()).end(t)
	recorder.refuses(t, invocation{args: []string{"--kubeconfig=" + s.kubeconfig(t), "--database=" + db.URL()}}, exitEnvironment,
		"another key", "fingerprint", "give it the key")
}

func TestTheExitCodeSaysWhyARunningRecorderEnded(t *testing.T) {
	t.Parallel()
	cms := configMaps()
	s := newServer(t, cms)
	a := cms.create("a")
	db := pgtest.New(t, pgtest.EmptyRecord)
	key := writeFile(t, "redaction.key", strings.Repeat("ab", 32))
	i := invocation{args: []string{"--kubeconfig=" + s.kubeconfig(t), "--database=" + db.URL(), "--redaction-key-file=" + key}}
	i.during = func(t *testing.T, _ *os.Process) {
		open(t, db).awaitCount(cms, 1)
		// As a recorder does that takes over.
		db.Exec(t, "UPDATE kuberewind.heads SET epoch = epoch + 1")
		a.update(1)
	}
	recorder.refuses(t, i, exitFenced, "another recorder has taken over", "epoch")
	i.during = func(t *testing.T, _ *os.Process) {
		open(t, db).await("the next recorder", `SELECT max(epoch) = 3 FROM kuberewind.epochs`)
		a.update(1)
		open(t, db).awaitCount(cms, 3)
		db.Exec(t, "ALTER TABLE kuberewind.deltas_data RENAME TO elsewhere")
		a.update(1)
	}
	recorder.refuses(t, i, exitFailed, "commit batch", "deltas_data", `run "recorder migrate"`)
}

func TestSIGTERMEndsTheProgramWithoutAnError(t *testing.T) {
	t.Parallel()
	cms := configMaps()
	s := newServer(t, cms)
	cms.create("a")
	db := pgtest.New(t, pgtest.EmptyRecord)
	i := invocation{args: []string{"--kubeconfig=" + s.kubeconfig(t), "--database=" + db.URL()}}
	i.during = func(t *testing.T, process *os.Process) {
		open(t, db).awaitCount(cms, 1)
		require.NoError(t, process.Signal(syscall.SIGTERM))
	}
	code, said := recorder.run(t, i)
	require.Equal(t, exitDone, code, said)
	require.Contains(t, said, "stopped")
}
