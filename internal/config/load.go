package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

const envPrefix = "RECORDER"

// Flags defines one flag for each key, with the defaults, and --config.
func Flags(flags *pflag.FlagSet) {
	d := Default()
	flags.String("config", "", "configuration file, YAML, JSON or TOML (default: kuberewind/recorder.yaml in the user's configuration directory, then in /etc)")
	flags.String("kubeconfig", d.Kubeconfig, "kubeconfig file (default: $KUBECONFIG, then ~/.kube/config, then in-cluster)")
	flags.String("context", d.Context, "context of the kubeconfig (default: its current context)")
	flags.String("cluster-name", d.ClusterName, "name of the cluster in the record (default: its name in the kubeconfig)")
	flags.String("database", d.Database, "PostgreSQL URL, or "+Embedded+" for a PostgreSQL of the recorder's own")
	flags.String("data-dir", d.DataDir, "directory of the embedded database, of the redaction key and of the spool")
	flags.Bool("migrate", d.Migrate, "bring an older schema up to date at the start; false refuses it")
	flags.String("leader-elect", d.LeaderElect, "how several recorders of a cluster elect one: database; lease (a Lease and the database); auto (lease in a cluster, else database)")
	flags.String("lease-namespace", d.LeaseNamespace, "namespace of the Lease (default: the Pod's)")
	flags.String("lease-name", d.LeaseName, "name of the Lease")
	flags.Duration("lease-duration", d.LeaseDuration, "how long a leader may be silent before another recorder takes over")
	flags.String("event-namespace", d.EventNamespace, "namespace for Events about the recorder itself (default: the Pod's; none outside a cluster)")
	flags.StringArray("include", d.Include, "record only what a rule matches: resource[.group][/namespace][?labels], * in each part")
	flags.StringArray("exclude", d.Exclude, "do not record what a rule matches; same form, wins over --include")
	flags.String("secret-values", d.SecretValues, "hash: Secret values are replaced by a keyed hash; record: they are recorded")
	flags.StringArray("redact", d.Redact, "further values to replace by a keyed hash: resource[.group]:/path/with/*")
	flags.String("redaction-key-file", d.RedactionKeyFile, "key of the hashes, made when missing (default: redaction.key in the data directory)")
	flags.String("queue-size", d.QueueSize, "bytes of deltas that may wait for the database in memory; also the limit of one page of a list")
	flags.String("spool-size", d.SpoolSize, "bytes on disk for deltas that wait for the database, if the queue is full or for more than 30 s; if it is full or 0, the watches pause")
	flags.String("spool-dir", d.SpoolDir, "directory of the deltas that wait on disk (default: spool in the data directory)")
	flags.Int("batch-rows", d.BatchRows, "most deltas in one transaction")
	flags.Duration("linger", d.Linger, "how long a batch waits for more deltas")
	flags.Int("list-concurrency", d.ListConcurrency, "lists in flight at once")
	flags.Int("checkpoint-every", d.CheckpointEvery, "deltas from one checkpoint to the next, which make replay fast; 0 chooses by the number of objects, -1 makes none")
	flags.Duration("drain-timeout", d.DrainTimeout, "time to write the queued deltas after SIGTERM")
	flags.String("listen", d.Listen, "address of /metrics, /healthz and /readyz; empty for none")
	flags.String("log-format", d.LogFormat, "text or json")
	flags.String("log-level", d.LogLevel, "debug, info, warn or error")
}

// Load reads the configuration. Flags override the environment, which overrides the file, which overrides the defaults. Load returns
// the configuration and the path of the file that it read, if any. Errors name the key and its place.
func Load(flags *pflag.FlagSet, environ []string) (Config, string, error) {
	v := viper.New()
	if err := v.BindPFlags(configured(flags)); err != nil {
		return Config{}, "", fmt.Errorf("bind flags: %w", err)
	}
	v.SetEnvPrefix(envPrefix)
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	if err := errors.Join(unknownEnvironment(environ), emptyRules(flags)); err != nil {
		return Config{}, "", err
	}
	file, err := readFile(v, flags, environ)
	if err != nil {
		return Config{}, "", err
	}
	var c Config
	if err := v.UnmarshalExact(&c, withoutWeakTypes); err != nil {
		return Config{}, "", fmt.Errorf("configuration%s: %w", from(file), err)
	}
	if err := c.Validate(); err != nil {
		return Config{}, "", fmt.Errorf("configuration%s: %w", from(file), err)
	}
	return c, file, nil
}

// configured returns the flags that are keys of the configuration.
func configured(flags *pflag.FlagSet) *pflag.FlagSet {
	keys := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(Keys(), f.Name) {
			keys.AddFlag(f)
		}
	})
	return keys
}

// Keys returns the names of all settings, sorted.
func Keys() []string {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	Flags(flags)
	var keys []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" {
			keys = append(keys, f.Name)
		}
	})
	return keys
}

func withoutWeakTypes(c *mapstructure.DecoderConfig) {
	c.DecodeHook = mapstructure.ComposeDecodeHookFunc(
		toDuration,
		stringToRules,
	)
}

// readFile reads the file that --config or RECORDER_CONFIG names, else the first file that exists on the search path.
func readFile(v *viper.Viper, flags *pflag.FlagSet, environ []string) (string, error) {
	path := lookup(environ, envPrefix+"_CONFIG")
	if f := flags.Lookup("config"); f != nil && f.Changed {
		path = f.Value.String()
	}
	if path == "" {
		path = firstExisting(searchPath())
	}
	if path == "" {
		return "", nil
	}
	if err := ReadFile(v, path); err != nil {
		return "", err
	}
	return path, unknownKeys(path)
}

// ReadFile reads a configuration file. The suffix of its name determines the format.
func ReadFile(v *viper.Viper, path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("configuration file %s does not exist", path)
	}
	if !slices.Contains(viper.SupportedExts, strings.TrimPrefix(filepath.Ext(path), ".")) {
		return fmt.Errorf("configuration file %s: its name must end in .yaml, .json or .toml", path)
	}
	v.SetConfigFile(path)
	if err := v.ReadInConfig(); err != nil {
		return fmt.Errorf("configuration file %s cannot be read: %w", path, err)
	}
	return nil
}

const ruleForm = "resource[.group][/namespace][?labels]"

// emptyRules refuses empty rules. viper drops them, so an intended filter would be missing.
func emptyRules(flags *pflag.FlagSet) error {
	var errs []error
	for name, form := range map[string]string{"include": ruleForm, "exclude": ruleForm, "redact": "resource[.group]:/path"} {
		f := flags.Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		if rules, ok := f.Value.(pflag.SliceValue); ok && slices.Contains(rules.GetSlice(), "") {
			errs = append(errs, fmt.Errorf("--%s is empty: give %s, or omit the flag", name, form))
		}
	}
	return errors.Join(errs...)
}

// unknownKeys returns an error for each key of the file that is no setting. It reads the file with a new viper, because the viper of
// readFile also has the keys of the flags.
func unknownKeys(path string) error {
	file := viper.New()
	if err := ReadFile(file, path); err != nil {
		return err
	}
	var errs []error
	for key := range file.AllSettings() {
		if !slices.Contains(Keys(), key) {
			errs = append(errs, fmt.Errorf("configuration file %s: %s names no setting; see recorder config --help", path, key))
		}
	}
	return errors.Join(errs...)
}

func searchPath() []string {
	var paths []string
	if dir, err := os.UserConfigDir(); err == nil {
		paths = append(paths, filepath.Join(dir, "kuberewind", "recorder.yaml"))
	}
	return append(paths, "/etc/kuberewind/recorder.yaml")
}

func firstExisting(paths []string) string {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func from(file string) string {
	if file == "" {
		return ""
	}
	return " (" + file + ")"
}

// serviceVariable matches variables that Kubernetes sets in each container for a Service. A Service named recorder adds
// RECORDER_SERVICE_HOST, RECORDER_PORT_80_TCP and similar ones, which are not configuration.
var serviceVariable = regexp.MustCompile(`^` + envPrefix + `(_.*)?_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_.+)?)?)$`)

func unknownEnvironment(environ []string) error {
	known := map[string]bool{envPrefix + "_CONFIG": true}
	for _, key := range Keys() {
		known[envPrefix+"_"+strings.ToUpper(strings.ReplaceAll(key, "-", "_"))] = true
	}
	var errs []error
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, envPrefix+"_") && !known[name] && !serviceVariable.MatchString(name) {
			errs = append(errs, fmt.Errorf("environment variable %s names no setting; see recorder config --help", name))
		}
	}
	return errors.Join(errs...)
}

func lookup(environ []string, name string) string {
	for _, pair := range environ {
		if key, value, ok := strings.Cut(pair, "="); ok && key == name {
			return value
		}
	}
	return ""
}
