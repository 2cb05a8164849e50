package pgdial_test

import (
	"context"
	"crypto/tls"
	"io"
	"math"
	"net"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgdial"
	"github.com/kuberewind/kuberewind/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// all is more connections than a test opens.
const all = math.MaxInt32

// A link accepts connections for a server.
type link struct {
	deaf    atomic.Int32 // connections up to this number receive nothing more from the server, and do not see its end
	refuses atomic.Int32 // so many new connections are closed at once
	taken   chan int32   // the number of each connection, from 1 on
	secure  *tls.Config  // of TLS that ends here, nil for none
	host    string
	port    uint16
}

func newLink(t *testing.T, config *pgx.ConnConfig, secure *tls.Config) *link {
	t.Helper()
	network, server := pgconn.NetworkAddress(config.Host, config.Port)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	number, err := strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	l := &link{host: host, port: uint16(number), taken: make(chan int32, 1000), secure: secure}
	ended := make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() {
		for n := int32(1); ; n++ {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			if l.taken <- n; l.refuses.Add(-1) >= 0 {
				_ = client.Close()
				continue
			}
			conn, err := net.Dial(network, server)
			if err != nil {
				_ = client.Close()
				continue
			}
			if client, err = l.secured(client); err != nil {
				_, _ = client.Close(), conn.Close()
				continue
			}
			both.Go(func() { _, _ = io.Copy(conn, client); _ = conn.Close() })
			both.Go(func() {
				m := &downstream{l, client, n}
				_, _ = io.Copy(m, conn)
				if m.swallows() {
					<-ended
				}
				_ = client.Close()
			})
		}
	})
	t.Cleanup(func() { close(ended); _ = listener.Close(); both.Wait() })
	return l
}

// secured answers a client's request for TLS as a server with TLS does.
func (l *link) secured(client net.Conn) (net.Conn, error) {
	if l.secure == nil {
		return client, nil
	}
	if _, err := io.ReadFull(client, make([]byte, 8)); err != nil {
		return client, err
	}
	if _, err := client.Write([]byte("S")); err != nil {
		return client, err
	}
	return tls.Server(client, l.secure), nil
}

// A downstream writes the server's data to a client.
type downstream struct {
	link   *link
	client net.Conn
	n      int32
}

func (m *downstream) swallows() bool { return m.n <= m.link.deaf.Load() }

func (m *downstream) Write(b []byte) (int, error) {
	if m.swallows() {
		return len(b), nil
	}
	return m.client.Write(b)
}

// connect returns a connection through the link that asks soon.
func connect(t *testing.T, db *pgtest.Database, change ...func(*pgx.ConnConfig)) (*pgx.Conn, *link) {
	t.Helper()
	return connectWith(t, db, nil, change...)
}

func connectWith(t *testing.T, db *pgtest.Database, secure *tls.Config, change ...func(*pgx.ConnConfig)) (*pgx.Conn, *link) {
	t.Helper()
	config, err := pgdial.ParseConfig(db.URL())
	require.NoError(t, err)
	l := newLink(t, config.ConnConfig, secure)
	config.ConnConfig.Host, config.ConnConfig.Port = l.host, l.port
	for _, f := range change {
		f(config.ConnConfig)
	}
	pgdial.AskInSilenceOf(config.ConnConfig, 100*time.Millisecond)
	conn, err := pgx.ConnectConfig(t.Context(), config.ConnConfig)
	require.NoError(t, err)
	require.EqualValues(t, 1, <-l.taken)
	t.Cleanup(func() { _ = conn.Close(t.Context()) }) // it may have failed
	return conn, l
}

func TestAStatementMayTakeLongWhileTheServerAnswersAnotherConnection(t *testing.T) {
	db := pgtest.New(t, nil)
	conn, _ := connect(t, db)
	_, err := conn.Exec(t.Context(), `SELECT pg_sleep(0.3)`)
	require.NoError(t, err)
	db.RefuseConnections(t) // a refusal is an answer
	defer db.AllowConnections(t)
	_, err = conn.Exec(t.Context(), `SELECT pg_sleep(0.3)`)
	require.NoError(t, err)
}

func TestAStatementFailsIfTheServerIsSilent(t *testing.T) {
	conn, l := connect(t, pgtest.New(t, nil))
	l.deaf.Store(all)
	l.refuses.Store(all)
	_, err := conn.Exec(t.Context(), `SELECT 1`)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorContains(t, err, "the database has not answered for 100ms")
	require.ErrorContains(t, err, "and does not answer another connection")
}

func TestAQuestionIsAskedForAStatementOverTLS(t *testing.T) {
	server := httptest.NewTLSServer(nil) // for its certificate
	defer server.Close()
	conn, l := connectWith(t, pgtest.New(t, nil), &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12}, func(config *pgx.ConnConfig) {
		config.TLSConfig = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // as by sslmode=require
	})
	_, err := conn.Exec(t.Context(), `SELECT pg_sleep(0.3)`)
	require.NoError(t, err)
	require.NotEmpty(t, l.taken, "a question was asked")
	l.deaf.Store(1)
	_, err = conn.Exec(t.Context(), `SELECT 1`)
	require.ErrorContains(t, err, "the answer was lost on the way")
}

func TestOneFailedQuestionDoesNotEndAStatement(t *testing.T) {
	conn, l := connect(t, pgtest.New(t, nil))
	l.refuses.Store(1)
	_, err := conn.Exec(t.Context(), `SELECT pg_sleep(1)`)
	require.NoError(t, err)
	require.Negative(t, l.refuses.Load(), "a second question was asked")
}

func TestAStatementFailsIfItsAnswerWasLost(t *testing.T) {
	conn, l := connect(t, pgtest.New(t, nil))
	l.deaf.Store(1)
	_, err := conn.Exec(t.Context(), `SELECT 1`)
	require.ErrorContains(t, err, "the answer was lost on the way")
}

func TestAStatementFailsIfItsSessionIsGone(t *testing.T) {
	db := pgtest.New(t, nil)
	conn, l := connect(t, db)
	l.deaf.Store(1)
	other, err := pgx.Connect(t.Context(), db.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close(t.Context())) }()
	var ended bool
	require.NoError(t, other.QueryRow(t.Context(), `SELECT pg_terminate_backend($1, 10000)`, conn.PgConn().PID()).Scan(&ended))
	require.True(t, ended)
	_, err = conn.Exec(t.Context(), `SELECT 1`)
	require.ErrorContains(t, err, "the session is gone")
}

// A pooler may change the names of sessions.
func TestAnyAnswerIsEnoughIfSessionsHaveNoNames(t *testing.T) {
	conn, l := connect(t, pgtest.New(t, nil), func(config *pgx.ConnConfig) {
		config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			return conn.Exec(ctx, `SET application_name = 'pooler'`).Close()
		}
	})
	_, err := conn.Exec(t.Context(), `SELECT pg_sleep(0.3)`)
	require.NoError(t, err)
	require.NotEmpty(t, l.taken)
}

func TestAQuestionEndsWithTheContextOfTheStatement(t *testing.T) {
	conn, l := connect(t, pgtest.New(t, nil))
	l.deaf.Store(all)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctx, `SELECT 1`)
		ended <- err
	}()
	<-l.taken
	cancel()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(20 * time.Second): // a question waits for a minute
		t.Fatal("it waits")
	}
}

func TestASessionKeepsItsMarkUnderAnyName(t *testing.T) {
	const long = "the auditors’ 🦉 own application, whose name is longer than a server keeps"
	db := pgtest.New(t, nil)
	for given, begins := range map[string]string{"": "kuberewind ", "audit": "audit ", long: "the auditors? ? own application, whose name is"} {
		conn, l := connect(t, db, func(config *pgx.ConnConfig) { config.RuntimeParams["application_name"] = given })
		var name string
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT current_setting('application_name')`).Scan(&name))
		require.True(t, strings.HasPrefix(name, begins), name)
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT set_config('application_name', `+pgdial.Rename(1)+`, false)`, "other").Scan(&name))
		require.Regexp(t, `^other [A-Z2-7]{16}$`, name)
		_, err := conn.Exec(t.Context(), `SELECT pg_sleep(0.3)`)
		require.NoError(t, err)
		require.NotEmpty(t, l.taken, "a question was asked")
	}
}
