package config

import (
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Plain puts a connection error of the database on one line and removes repeated causes. pgx tries an address twice, with encryption
// and without, so its error may name one cause twice. Plain removes the connection string from parse errors, and returns other errors
// unchanged.
func Plain(err error) error {
	if !errors.As(err, new(*pgconn.ConnectError)) {
		return unparsed(err)
	}
	lines := strings.Split(err.Error(), "\n")
	var said []string
	for _, line := range lines[1:] {
		line = strings.TrimSpace(line)
		repeats := func(before string) bool { return strings.Contains(before, line) }
		if line != "" && !slices.ContainsFunc(said, repeats) {
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return err
	}
	return &plainError{err, lines[0] + " " + strings.Join(said, "; ")}
}

type plainError struct {
	error
	text string
}

func (e *plainError) Error() string { return e.text }

func (e *plainError) Unwrap() error { return e.error }
