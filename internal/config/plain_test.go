package config

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func TestWhatTwoAttemptsToConnectHaveMetIsSaidOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	_, err = pgx.Connect(t.Context(), "postgres://me@"+address+"/record")
	plain := Plain(fmt.Errorf("open: %w", err))
	require.EqualError(t, plain, fmt.Sprintf("open: failed to connect to `user=me database=record`: %s (127.0.0.1): dial error: dial tcp %[1]s: connect: connection refused", address))
	require.ErrorAs(t, plain, new(*pgconn.ConnectError))
	other := errors.New("one\ntwo\ntwo")
	require.Equal(t, other, Plain(other))
}
