package recorder

import (
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/clock"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/documents"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/notices"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/schemacheck"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Recorder records one cluster. All fields except follower are set before its goroutines begin. The method follow sets follower before
// the first stream is launched.
type Recorder struct {
	env             surroundings
	election        *election.Election // nil before it has begun
	sink            *postgres.Sink
	queue           *deltafifo.Queue
	spool           *spooling.Folder
	streams         *stream.Set
	launcher        *stream.Launcher
	rollbackStreams *rollback.Streams
	clock           *clock.Clock
	time            *clock.Keeper
	schemas         *schemacheck.Schemas
	documents       *documents.Follower
	follower        *kube.Follower // follows the served resources
	before          before
	progress        progress
}

// progress is the progress of the start.
type progress struct {
	started   time.Time     // when the record was opened, by the clock of the record
	recording chan struct{} // closed when each stream that discovery found at the start has started
	allOpen   chan struct{} // closed when all streams with living objects on record are open
}

// before is what earlier recorders recorded about resources.
type before struct {
	// definitions is the resource version up to which earlier recorders recorded CustomResourceDefinitions.
	definitions string
	// recorded are the resources that earlier recorders followed, and whose end they may not have seen.
	recorded []kube.Resource
	// unfollowed holds definitions whose resource an earlier recorder was to follow, but did not follow yet. It maps the UID of the
	// definition to the resource version that created it.
	unfollowed map[types.UID]string
}

func newRecorder(cfg config.Config, log *slog.Logger) *Recorder {
	return &Recorder{
		env:     surroundings{cfg: cfg, log: log, metrics: telemetry.NewMetrics(), notices: notices.New(nil)},
		schemas: schemacheck.NewSchemas(), spool: &spooling.Folder{}, documents: documents.NewFollower(log),
		progress: progress{recording: make(chan struct{}), allOpen: make(chan struct{})},
	}
}
