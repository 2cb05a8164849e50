// Package chaos_test injects faults at random. The shipped recorder follows a real API server with etcd and writes to a real
// PostgreSQL, under continuous load. After each round the test compares the record with the whole history of etcd.
// docs/developing.md says how to run it and how to read its table.
package chaos_test

import (
	"flag"
	"testing"
	"time"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

var (
	seed      = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of everything that is chosen at random; it is printed")
	lasting   = flag.Duration("for", 0, "how long rounds are added; 0 for as many as -rounds says")
	rounds    = flag.Int("rounds", 0, "how many rounds there are at least; 0 for one with each kind of fault")
	revisions = flag.Int("revisions", 0, "how many revisions of recorded objects there are at least")
	kinds     = flag.String("faults", quick, "kinds of faults, separated by commas: all for every one, quick for those that take seconds, -kind for all named before it but that one")
	compacted = flag.Duration("compact", 0, "how often etcd is compacted to what it was that long before, as in production every five minutes; 0 for never")
	away      = flag.Duration("away", 0, "how long PostgreSQL is away at least when it is")
	older     = flag.String("older", "", "path of a kube-apiserver of another release, which the API server is rolled to and back")
	rate      = flag.Int("rate", 100, "writes a second")
)

// quick names the kinds of faults from which the recorder recovers in seconds.
const quick = "quick"

func TestMain(m *testing.M) { recordertest.Main(m, "recorder", "replay") }
