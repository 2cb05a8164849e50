package pgdial_test

import (
	"io"
	"net"
	"os"
	"strconv"
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

// link takes connections for a server. While it swallows, what the server says does not arrive, and new connections come to nothing.
type link struct {
	swallows atomic.Bool
	host     string
	port     uint16
}

func newLink(t *testing.T, config *pgx.ConnConfig) *link {
	t.Helper()
	network, server := pgconn.NetworkAddress(config.Host, config.Port)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	number, err := strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	l := &link{host: host, port: uint16(number)}
	var both sync.WaitGroup
	both.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			if l.swallows.Load() {
				_ = client.Close()
				continue
			}
			conn, err := net.Dial(network, server)
			if err != nil {
				_ = client.Close()
				continue
			}
			both.Go(func() { _, _ = io.Copy(conn, client); _ = conn.Close() })
			both.Go(func() { _, _ = io.Copy(&mouth{l, client}, conn); _ = client.Close() })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); both.Wait() })
	return l
}

// mouth is what a server speaks to a client with.
type mouth struct {
	link   *link
	client net.Conn
}

func (m *mouth) Write(b []byte) (int, error) {
	if m.link.swallows.Load() {
		return len(b), nil
	}
	return m.client.Write(b)
}

// connect gives a connection that asks soon, through the link.
func connect(t *testing.T, db *pgtest.Database) (*pgx.Conn, *link) {
	t.Helper()
	config, err := pgdial.ParseConfig(db.URL())
	require.NoError(t, err)
	config.ConnConfig.ConnectTimeout = 2 * time.Minute
	l := newLink(t, config.ConnConfig)
	config.ConnConfig.Host, config.ConnConfig.Port = l.host, l.port
	pgdial.AskInSilenceOf(config.ConnConfig, 20*time.Millisecond)
	conn, err := pgx.ConnectConfig(t.Context(), config.ConnConfig)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) }) // it may have failed
	return conn, l
}

func TestAStatementMayTakeLongWhileTheServerAnswersAnotherConnection(t *testing.T) {
	db := pgtest.New(t, nil)
	conn, _ := connect(t, db)
	_, err := conn.Exec(t.Context(), `SELECT pg_sleep(0.3)`)
	require.NoError(t, err)
	db.RefuseConnections(t) // which is an answer
	defer db.AllowConnections(t)
	_, err = conn.Exec(t.Context(), `SELECT pg_sleep(0.3)`)
	require.NoError(t, err)
}

func TestAStatementEndsWhenTheServerHasFallenSilent(t *testing.T) {
	conn, l := connect(t, pgtest.New(t, nil))
	l.swallows.Store(true)
	_, err := conn.Exec(t.Context(), `SELECT 1`)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorContains(t, err, "the database has not answered for 20ms")
	require.ErrorContains(t, err, "and does not answer another connection")
}
