package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/redact"
)

// Embedded is the value of Database for a PostgreSQL that the recorder starts itself.
const Embedded = "embedded"

// Values of LeaderElect.
const (
	// ElectAuto is ElectLease in a cluster that grants it, else ElectDatabase.
	ElectAuto = "auto"
	// ElectLease elects by a Lease of the cluster and by the database.
	ElectLease = "lease"
	// ElectDatabase elects by the database alone. The election writes nothing to the cluster.
	ElectDatabase = "database"
)

// Config holds all settings, by what they are about. The field tags are the keys of the flags and of the file. The variables of the
// environment are the same keys in upper case, with underscores and the prefix RECORDER_.
type Config struct {
	Cluster   `mapstructure:",squash"`
	Storage   `mapstructure:",squash"`
	Election  `mapstructure:",squash"`
	Rules     `mapstructure:",squash"`
	Redaction `mapstructure:",squash"`
	Queue     `mapstructure:",squash"`
	Pace      `mapstructure:",squash"`
	Output    `mapstructure:",squash"`
}

// Cluster is the recorded cluster.
type Cluster struct {
	// Kubeconfig and Context choose the cluster as in other client-go programs; both may be empty.
	Kubeconfig string `mapstructure:"kubeconfig"`
	Context    string `mapstructure:"context"`
	// ClusterName is the name of the cluster in SQL; empty means the name in the kubeconfig.
	ClusterName string `mapstructure:"cluster-name"`
	// EventNamespace is the namespace of the recorder's own Events; empty means the namespace of the Pod, or no Events outside a cluster.
	EventNamespace string `mapstructure:"event-namespace"`
}

// Storage is where the record is.
type Storage struct {
	// Database is a PostgreSQL URL or DSN, or Embedded.
	Database string `mapstructure:"database"`
	// DataDir holds the embedded database, the redaction key and the spool.
	DataDir string `mapstructure:"data-dir"`
	// Migrate brings an older schema up to date when the recorder starts.
	Migrate bool `mapstructure:"migrate"`
}

// Election is about several recorders of one cluster, one of which records.
type Election struct {
	// LeaderElect is how recorders of one cluster elect the one that records: ElectAuto, ElectLease or ElectDatabase.
	LeaderElect string `mapstructure:"leader-elect"`
	// LeaseNamespace and LeaseName name the Lease; an empty namespace means the namespace of the Pod.
	LeaseNamespace string `mapstructure:"lease-namespace"`
	LeaseName      string `mapstructure:"lease-name"`
	// LeaseDuration is how long a leader may be silent before another recorder takes over.
	LeaseDuration time.Duration `mapstructure:"lease-duration"`
}

// Rules choose what is recorded.
type Rules struct {
	// Include and Exclude are filter rules; see package filter.
	Include []string `mapstructure:"include"`
	Exclude []string `mapstructure:"exclude"`
}

// Redaction is which values are replaced by hashes.
type Redaction struct {
	// SecretValues is "hash" or "record".
	SecretValues string `mapstructure:"secret-values"`
	// Redact lists further paths whose values are hashed; see redact.ParsePath.
	Redact []string `mapstructure:"redact"`
	// RedactionKeyFile holds the key of the hashes; empty means DataDir/redaction.key. A missing file is made.
	RedactionKeyFile string `mapstructure:"redaction-key-file"`
}

// Queue is where deltas wait for the database, in memory and on disk.
type Queue struct {
	// QueueSize bounds the deltas that wait for the database in memory, as a Kubernetes quantity of bytes.
	QueueSize string `mapstructure:"queue-size"`
	// SpoolSize bounds the deltas that wait for the database on disk, as a Kubernetes quantity of bytes. Deltas go there if the queue
	// is full or they wait for long. 0 means no spool.
	SpoolSize string `mapstructure:"spool-size"`
	// SpoolDir is the directory of the spools; empty means DataDir/spool.
	SpoolDir string `mapstructure:"spool-dir"`
}

// Pace is how much the recorder does at once, and how often.
type Pace struct {
	// BatchRows is the maximum number of deltas in one transaction.
	BatchRows int `mapstructure:"batch-rows"`
	// Linger is how long a batch waits for more deltas.
	Linger time.Duration `mapstructure:"linger"`
	// ListConcurrency is how many lists may run at once.
	ListConcurrency int `mapstructure:"list-concurrency"`
	// CheckpointEvery is the number of deltas between checkpoints: 0 chooses by the size of the cluster, -1 makes none.
	CheckpointEvery int `mapstructure:"checkpoint-every"`
	// DrainTimeout bounds the writing of queued deltas after SIGTERM.
	DrainTimeout time.Duration `mapstructure:"drain-timeout"`
}

// Output is what the recorder shows of itself.
type Output struct {
	// Listen is the address of /metrics, /healthz and /readyz; empty means none.
	Listen string `mapstructure:"listen"`
	// LogFormat is "text" or "json"; LogLevel is "debug", "info", "warn" or "error".
	LogFormat string `mapstructure:"log-format"`
	LogLevel  string `mapstructure:"log-level"`
}

// Default is the configuration of a recorder without settings.
func Default() Config {
	return Config{
		Storage: Storage{Database: Embedded, DataDir: defaultDataDir(), Migrate: true},
		Election: Election{
			LeaderElect: ElectAuto,
			LeaseName:   "kuberewind-recorder",
			// The slowest takeover then takes less than 15 s: by a Lease, from a leader that was stopped in a transaction.
			LeaseDuration: 6 * time.Second,
		},
		Redaction: Redaction{SecretValues: string(redact.Hash)},
		Queue: Queue{
			// 256 MiB holds thousands of deltas/s while the database is away for some seconds.
			QueueSize: "256Mi",
			// Enough for at least ten minutes of a busy cluster.
			SpoolSize: "10Gi",
		},
		Pace: Pace{
			// Beyond 2,000 rows, a COPY is no faster and only adds latency.
			BatchRows: 2000,
			Linger:    10 * time.Millisecond,
			// Few lists at a time, so that the recorder does not slow down the API server.
			ListConcurrency: 4,
			// Kubernetes kills a Pod 30 s after SIGTERM.
			DrainTimeout: 25 * time.Second,
		},
		Output: Output{Listen: "127.0.0.1:9464", LogFormat: "text", LogLevel: "info"},
	}
}

func defaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/kuberewind"
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "kuberewind")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), fmt.Sprintf("kuberewind-%d", os.Geteuid()))
	}
	return filepath.Join(home, ".local", "share", "kuberewind")
}

// maxBytes is the maximum of a size in bytes.
const maxBytes = math.MaxInt64

// QueueBytes returns QueueSize in bytes.
func (q Queue) QueueBytes() (int64, error) {
	quantity, err := resource.ParseQuantity(q.QueueSize)
	if err != nil {
		return 0, fmt.Errorf("queue-size %q is not a quantity of bytes such as 256Mi: %w", q.QueueSize, err)
	}
	if quantity.CmpInt64(maxBytes) > 0 {
		return 0, fmt.Errorf("queue-size %q is beyond its maximum of %d", q.QueueSize, int64(maxBytes))
	}
	if quantity.Value() < 1<<20 {
		return 0, fmt.Errorf("queue-size %q is below its minimum of 1Mi", q.QueueSize)
	}
	return quantity.Value(), nil
}

// SpoolBytes returns SpoolSize in bytes.
func (q Queue) SpoolBytes() (int64, error) {
	quantity, err := resource.ParseQuantity(q.SpoolSize)
	if err != nil {
		return 0, fmt.Errorf("spool-size %q is not a quantity of bytes such as 10Gi: %w", q.SpoolSize, err)
	}
	if quantity.CmpInt64(maxBytes) > 0 {
		return 0, fmt.Errorf("spool-size %q is beyond its maximum of %d", q.SpoolSize, int64(maxBytes))
	}
	if n := quantity.Value(); n != 0 && n < 1<<20 {
		return 0, fmt.Errorf("spool-size %q is neither 0 nor at least 1Mi", q.SpoolSize)
	}
	return quantity.Value(), nil
}

// Spool returns the folder of the spools.
func (c Config) Spool() string {
	if c.SpoolDir != "" {
		return c.SpoolDir
	}
	return filepath.Join(c.DataDir, "spool")
}

// Level returns LogLevel as a level of slog.
func (o Output) Level() (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.LogLevel)); err != nil {
		return 0, fmt.Errorf("log-level %q is none of debug, info, warn, error", o.LogLevel)
	}
	return level, nil
}

// KeyFile returns the path of the redaction key.
func (c Config) KeyFile() string {
	if c.RedactionKeyFile != "" {
		return c.RedactionKeyFile
	}
	return filepath.Join(c.DataDir, "redaction.key")
}

// Filter returns the filter of the rules in Include and Exclude.
func (r Rules) Filter() (*filter.Filter, error) { return filter.New(r.Include, r.Exclude) }

// Validate returns all invalid values in one error.
func (c Config) Validate() error {
	_, queueErr := c.QueueBytes()
	_, spoolErr := c.SpoolBytes()
	_, levelErr := c.Level()
	_, filterErr := c.Filter()
	_, redactErr := redact.ParsePaths(c.Redact)
	return errors.Join(
		queueErr, spoolErr, levelErr, filterErr, redactErr,
		oneOf("secret-values", c.SecretValues, string(redact.Hash), string(redact.Record)),
		oneOf("log-format", c.LogFormat, "text", "json"),
		oneOf("leader-elect", c.LeaderElect, ElectAuto, ElectLease, ElectDatabase),
		c.validateLease(),
		atLeast("batch-rows", c.BatchRows, 1),
		atLeast("list-concurrency", c.ListConcurrency, 1),
		atLeast("checkpoint-every", c.CheckpointEvery, -1),
		notNegative("linger", c.Linger),
		notNegative("drain-timeout", c.DrainTimeout),
		notEmpty("database", c.Database),
		notEmpty("data-dir", c.DataDir),
	)
}

func (c Config) validateLease() error {
	switch {
	case c.LeaderElect == ElectLease && c.Database == Embedded:
		return errors.New("leader-elect lease is for recorders that share a database: name it with --database")
	case c.LeaseDuration < election.MinTerm:
		return fmt.Errorf("lease-duration %s is below its minimum of %s", c.LeaseDuration, election.MinTerm)
	}
	return notEmpty("lease-name", c.LeaseName)
}

func oneOf(key, value string, allowed ...string) error {
	for _, candidate := range allowed {
		if value == candidate {
			return nil
		}
	}
	return fmt.Errorf("%s %q is none of %v", key, value, allowed)
}

func atLeast(key string, value, minimum int) error {
	if value < minimum {
		return fmt.Errorf("%s %d is below its minimum of %d", key, value, minimum)
	}
	return nil
}

func notNegative(key string, value time.Duration) error {
	if value < 0 {
		return fmt.Errorf("%s %s is negative", key, value)
	}
	return nil
}

func notEmpty(key, value string) error {
	if value == "" {
		return fmt.Errorf("%s is empty", key)
	}
	return nil
}
