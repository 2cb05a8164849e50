// Package badinput_test shows the recorder what it should never see: an API server that lies or breaks down, a database that
// breaks down, objects of every odd form. Each test wants a clear error, and then nothing lost of what the server served.
//
// The API server is a double, because a real one cannot be made to lie; the database is real.
package badinput_test

import (
	"flag"
	"runtime"
	"strconv"
	"testing"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

func TestMain(m *testing.M) {
	// The tests wait far more than they compute: as many as there are may run at once, unless somebody asks for less.
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "64")
	}
	recordertest.Main(m, "recorder")
}
