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

func TestTheErrorOfTwoAttemptsToConnectIsPrintedOnce(t *testing.T) {
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

func TestAnErrorDoesNotRepeatAnInvalidConnectionString(t *testing.T) {
	for _, c := range []struct{ database, want string }{
		{"u:hun:ter2@h/d", "neither a URL"}, {"postgres://u:hun/ter2@h:x/d", "invalid port"}, {"u:hun ter2@h=", "neither a URL"},
		{"postgres://u:hunter2@h/d?sslmode=often", "sslmode is invalid"},
	} {
		_, err := pgx.ParseConfig(c.database)
		plain := Plain(fmt.Errorf("open: %w", err))
		require.ErrorContains(t, plain, "open: ")
		require.ErrorContains(t, plain, c.want)
		require.NotContains(t, plain.Error(), "hun")
		require.NotContains(t, plain.Error(), "ter2")
		require.ErrorAs(t, plain, new(*pgconn.ParseConfigError))
	}
}
