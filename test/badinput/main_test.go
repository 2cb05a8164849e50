// Package badinput_test gives the recorder bad input: an API server that lies or breaks down, a database that breaks down, and
// odd objects. Each test wants a clear error, and then all that the server served.
//
// The API server is a double, because a real one cannot be made to lie. The database is real.
package badinput_test

import (
	"testing"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

func TestMain(m *testing.M) {
	pgtest.Parallel(8) // more recorders that start at once keep each other from an answer in time
	recordertest.Main(m, "recorder")
}
