// Package badinput_test shows the recorder what it should never see: an API server that lies or breaks down, a database that
// breaks down, objects of every odd form. Each test wants a clear error, and then nothing lost of what the server served.
//
// The API server is a double, because a real one cannot be made to lie; the database is real.
package badinput_test

import (
	"testing"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

func TestMain(m *testing.M) {
	pgtest.Parallel(64)
	recordertest.Main(m, "recorder")
}
