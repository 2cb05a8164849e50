package system_test

import (
	"testing"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// newDatabase makes a database with an empty record. Tests that have a recorder make the record are in cmd/recorder.
func newDatabase(t *testing.T) string {
	t.Helper()
	return pgtest.New(t, pgtest.EmptyRecord).URL()
}
