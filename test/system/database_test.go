package system_test

import (
	"testing"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// newDatabase makes an empty database: the recorder migrates it.
func newDatabase(t *testing.T) string {
	t.Helper()
	return pgtest.New(t, nil).URL()
}
