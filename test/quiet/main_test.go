// Package quiet_test measures what quiet streams cost, and what they lose: the shipped recorder follows a real API server with
// etcd. It runs for minutes, outside make test; docs/developing.md says how to run it.
package quiet_test

import (
	"flag"
	"testing"
	"time"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

var (
	kills   = flag.Int("kills", 0, "how often the recorder of a quiet cluster is killed; 0 skips that (make quiet)")
	compact = flag.Duration("compact", 15*time.Second, "how often the API server has etcd compacted")
	alive   = flag.Duration("alive", 0, "how long a recorder lives at most before it is killed; 0 for half a minute more than -compact")
	events  = flag.Int("events", 0, "how many Events there are")
	returns = flag.Int("returns", 0, "how often the API server goes away and comes back under load; 0 skips that (make quiet-return)")
	etcd    = flag.Bool("etcd", false, "restart etcd after the API server")
)

func TestMain(m *testing.M) { recordertest.Main(m, "recorder") }
