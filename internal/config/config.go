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

// Embedded is the value of Database that asks for a PostgreSQL of the recorder's own.
const Embedded = "embedded"

// Values of LeaderElect.
const (
	// ElectAuto is ElectLease in a cluster that grants it, else ElectDatabase.
	ElectAuto = "auto"
	// ElectLease is by a Lease of the cluster, and by the database.
	ElectLease = "lease"
	// ElectDatabase is by the database alone: nothing is written to the cluster.
	ElectDatabase = "database"
)

// Config is everything that can be configured. Its field tags are the keys of flags, of the file and, in upper case
// with underscores and the prefix RECORDER_, of the environment.
type Config struct {
	// Kubeconfig and Context choose the cluster as every client-go program does; both may be empty.
	Kubeconfig string `mapstructure:"kubeconfig"`
	Context    string `mapstructure:"context"`
	// ClusterName is what SQL calls the cluster; empty takes the name from the kubeconfig.
	ClusterName string `mapstructure:"cluster-name"`

	// Database is a PostgreSQL URL or DSN, or Embedded.
	Database string `mapstructure:"database"`
	// DataDir holds the embedded database, the redaction key and the spool.
	DataDir string `mapstructure:"data-dir"`
	// Migrate brings an older schema up to date when the recorder starts.
	Migrate bool `mapstructure:"migrate"`

	// LeaderElect is how recorders of one cluster agree on which of them records: one of the values that begin with Elect.
	LeaderElect string `mapstructure:"leader-elect"`
	// LeaseNamespace and LeaseName are those of the Lease; an empty namespace is that of the Pod.
	LeaseNamespace string `mapstructure:"lease-namespace"`
	LeaseName      string `mapstructure:"lease-name"`
	// LeaseDuration is how long a leader may be silent before it is taken for gone.
	LeaseDuration time.Duration `mapstructure:"lease-duration"`
	// EventNamespace is the namespace of the recorder's own Events; empty is that of the Pod, and none outside a cluster.
	EventNamespace string `mapstructure:"event-namespace"`

	// Include and Exclude are filter rules; see filter.ParseRule.
	Include []string `mapstructure:"include"`
	Exclude []string `mapstructure:"exclude"`

	// SecretValues is "hash" or "record".
	SecretValues string `mapstructure:"secret-values"`
	// Redact names further paths whose values are hashed; see redact.ParsePath.
	Redact []string `mapstructure:"redact"`
	// RedactionKeyFile holds the key of the hashes; empty means DataDir/redaction.key, made when it is missing.
	RedactionKeyFile string `mapstructure:"redaction-key-file"`

	// QueueSize bounds what waits for the database, as a Kubernetes quantity of bytes.
	QueueSize string `mapstructure:"queue-size"`
	// SpoolSize bounds what waits for the database on disk, when the queue is full or for long, as a Kubernetes quantity of bytes; 0 is none.
	SpoolSize string `mapstructure:"spool-size"`
	// SpoolDir is where that is; empty means DataDir/spool.
	SpoolDir string `mapstructure:"spool-dir"`
	// BatchRows is the most deltas that one transaction takes.
	BatchRows int `mapstructure:"batch-rows"`
	// Linger is how long a batch waits for more deltas.
	Linger time.Duration `mapstructure:"linger"`
	// ListConcurrency is how many lists are in flight at once.
	ListConcurrency int `mapstructure:"list-concurrency"`
	// CheckpointEvery is after how many deltas a checkpoint is made: 0 chooses by the size of the cluster, -1 makes none.
	CheckpointEvery int `mapstructure:"checkpoint-every"`
	// DrainTimeout bounds the time between SIGTERM and exit.
	DrainTimeout time.Duration `mapstructure:"drain-timeout"`

	// Listen is the address of /metrics, /healthz and /readyz; empty means none.
	Listen string `mapstructure:"listen"`
	// LogFormat is "text" or "json"; LogLevel is "debug", "info", "warn" or "error".
	LogFormat string `mapstructure:"log-format"`
	LogLevel  string `mapstructure:"log-level"`
}

// Default is the configuration of a recorder without settings.
func Default() Config {
	return Config{
		Database:    Embedded,
		DataDir:     defaultDataDir(),
		Migrate:     true,
		LeaderElect: ElectAuto,
		LeaseName:   "kuberewind-recorder",
		// With it the slowest takeover takes less than 15 s: from a leader that was stopped in a transaction, by a Lease.
		LeaseDuration: 6 * time.Second,
		SecretValues:  string(redact.Hash),
		// A quarter of a gibibyte rides out a database that is away for some seconds at thousands of deltas/s.
		QueueSize: "256Mi",
		// Ten minutes and more of a busy cluster.
		SpoolSize: "10Gi",
		// Beyond 2,000 rows a COPY gains nothing but latency.
		BatchRows: 2000,
		Linger:    10 * time.Millisecond,
		// A few lists at a time: a recorder must not be what makes an API server slow.
		ListConcurrency: 4,
		// Kubernetes kills a Pod 30 s after SIGTERM.
		DrainTimeout: 25 * time.Second,
		Listen:       "127.0.0.1:9464",
		LogFormat:    "text",
		LogLevel:     "info",
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

// mostBytes is what the number of bytes of a size can be.
const mostBytes = math.MaxInt64

// QueueBytes is QueueSize in bytes.
func (c Config) QueueBytes() (int64, error) {
	quantity, err := resource.ParseQuantity(c.QueueSize)
	if err != nil {
		return 0, fmt.Errorf("queue-size %q is not a quantity of bytes such as 256Mi: %w", c.QueueSize, err)
	}
	if quantity.CmpInt64(mostBytes) > 0 {
		return 0, fmt.Errorf("queue-size %q is beyond its maximum of %d", c.QueueSize, int64(mostBytes))
	}
	if quantity.Value() < 1<<20 {
		return 0, fmt.Errorf("queue-size %q is below its minimum of 1Mi", c.QueueSize)
	}
	return quantity.Value(), nil
}

// SpoolBytes is SpoolSize in bytes.
func (c Config) SpoolBytes() (int64, error) {
	quantity, err := resource.ParseQuantity(c.SpoolSize)
	if err != nil {
		return 0, fmt.Errorf("spool-size %q is not a quantity of bytes such as 10Gi: %w", c.SpoolSize, err)
	}
	if quantity.CmpInt64(mostBytes) > 0 {
		return 0, fmt.Errorf("spool-size %q is beyond its maximum of %d", c.SpoolSize, int64(mostBytes))
	}
	if n := quantity.Value(); n != 0 && n < 1<<20 {
		return 0, fmt.Errorf("spool-size %q is neither 0 nor at least 1Mi", c.SpoolSize)
	}
	return quantity.Value(), nil
}

// Spool is the folder of the spools.
func (c Config) Spool() string {
	if c.SpoolDir != "" {
		return c.SpoolDir
	}
	return filepath.Join(c.DataDir, "spool")
}

// Level is LogLevel as slog has it.
func (c Config) Level() (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return 0, fmt.Errorf("log-level %q is none of debug, info, warn, error", c.LogLevel)
	}
	return level, nil
}

// KeyFile is the file of the redaction key.
func (c Config) KeyFile() string {
	if c.RedactionKeyFile != "" {
		return c.RedactionKeyFile
	}
	return filepath.Join(c.DataDir, "redaction.key")
}

// Filter is what Include and Exclude say.
func (c Config) Filter() (*filter.Filter, error) { return filter.New(c.Include, c.Exclude) }

// Validate gives every fault of the values at once.
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
