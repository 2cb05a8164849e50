package pgdial

import (
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAURLWithoutATimeoutGetsTheDefaultOne(t *testing.T) {
	for url, patience := range map[string]time.Duration{"postgres://localhost/x": connectPatience, "host=localhost connect_timeout=3": 3 * time.Second} {
		config, err := ParseConfig(url)
		require.NoError(t, err)
		require.Equal(t, patience, config.ConnConfig.ConnectTimeout, url)
	}
	_, err := ParseConfig("postgres://localhost:port/x")
	require.Error(t, err)
}

// pair returns a connection under test and its other end. The network takes no time in the bubble.
func pair(t *testing.T) (p *patient, other net.Conn) {
	a, other := net.Pipe()
	t.Cleanup(func() { _, _ = a.Close(), other.Close() })
	return &patient{Conn: a, silence: time.Minute}, other
}

func TestSilenceEndsARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, other := pair(t)
		began := time.Now()
		go func() {
			time.Sleep(50 * time.Second)
			_, _ = other.Write([]byte("a"))
		}()
		n, err := p.Read(make([]byte, 10))
		require.NoError(t, err)
		require.Equal(t, 1, n)
		_, err = p.Read(make([]byte, 10))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.ErrorContains(t, err, "has not answered for 1m0s")
		require.Equal(t, 110*time.Second, time.Since(began))
	})
}

func TestADeadlineEndsARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := pair(t)
		began := time.Now()
		go func() {
			time.Sleep(5 * time.Second)
			_ = p.SetDeadline(began) // as pgx does to end a waiting read
		}()
		for range 2 {
			_, err := p.Read(make([]byte, 10))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NotContains(t, err.Error(), "answered")
			require.Equal(t, 5*time.Second, time.Since(began))
		}
		require.NoError(t, p.SetDeadline(time.Now().Add(time.Hour)))
		_, err := p.Read(make([]byte, 10))
		require.ErrorContains(t, err, "has not answered")
		require.Equal(t, 65*time.Second, time.Since(began))
	})
}
