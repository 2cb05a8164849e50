package env

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/kuberewind/kuberewind/internal/config"
)

// Settings are the values that a flag, a variable REPLAY_… or the file can set.
type Settings struct {
	// Database is a PostgreSQL URL or DSN, or config.Embedded.
	Database string
	// DataDir holds the embedded database.
	DataDir string
	// Cluster is the name of the cluster in the record, "" if the record holds only one.
	Cluster string
	// Quiet suppresses notes and progress.
	Quiet bool
	// UTC parses times without a zone, and prints all times, in UTC.
	UTC bool
	// Color is auto, always or never.
	Color string
	// NoPager prints directly to the terminal.
	NoPager bool
	// Fold selects the changes that log, story and diff only count.
	Fold Fold

	exposed string // the configuration file, if config.Exposed is true for it
}

// Fold selects the changes that commands show. A command has a flag for each key that it supports.
type Fold struct {
	Verbose, Events bool
	Only            string
	Ignore          []string
}

// SettingKeys are the keys of Settings.
var SettingKeys = []string{"cluster", "color", "data-dir", "database", "events", "ignore", "no-pager", "only", "quiet", "utc", "verbose"}

// ColorAuto colours output that a person reads at a terminal.
const ColorAuto = "auto"

// Colors are the values of Settings.Color.
var Colors = []string{ColorAuto, "always", "never"}

// sharedKeys are the keys that default to the recorder's settings.
var sharedKeys = []string{"data-dir", "database"}

// The names of the two programs in variables and file names.
const (
	ProgramName  = "replay"
	recorderName = "recorder"
)

// SettingFlags adds a flag for each setting.
func SettingFlags(flags *pflag.FlagSet) {
	d := config.Default()
	flags.String("config", "", "configuration file, YAML, JSON or TOML (default: kuberewind/replay.yaml in the user's configuration directory, then in /etc)")
	flags.String("database", d.Database, "PostgreSQL URL of the record, or "+config.Embedded+" for the recorder's own PostgreSQL")
	flags.String("data-dir", d.DataDir, "directory of the embedded database")
	flags.String("cluster", "", "name of the cluster in the record (default: the only one)")
	flags.String("color", ColorAuto, "auto (at a terminal, unless NO_COLOR is set), always or never")
	flags.BoolP("quiet", "q", false, "print no notes and no progress on standard error")
	flags.Bool("no-pager", false, "print directly to the terminal, also if the output is long")
	flags.Bool("utc", false, "use UTC instead of the local zone, for typed times without a zone and for printed times")
}

// loadSettings reads the settings. Precedence: flags, environment, file, the recorder's settings, defaults.
func loadSettings(flags *pflag.FlagSet, environ []string) (Settings, error) {
	if err := unknownVariables(environ); err != nil {
		return Settings{}, err
	}
	v := viper.New()
	for _, key := range SettingKeys {
		flag := flags.Lookup(key)
		if flag == nil {
			continue // this command does not have the flag
		}
		if err := v.BindPFlag(key, flag); err != nil {
			return Settings{}, fmt.Errorf("bind flags: %w", err)
		}
	}
	if err := recorderDefaults(v, environ); err != nil {
		return Settings{}, err
	}
	named := variable(environ, ProgramName, "config")
	if f := flags.Lookup("config"); f != nil && f.Changed {
		named = f.Value.String()
	}
	file, err := readSettings(ProgramName, named)
	if err != nil {
		return Settings{}, err
	}
	if err := v.MergeConfigMap(file.AllSettings()); err != nil {
		return Settings{}, err
	}
	// An empty variable counts as not set.
	for _, key := range SettingKeys {
		if value := variable(environ, ProgramName, key); value != "" {
			if err := v.MergeConfigMap(map[string]any{key: value}); err != nil {
				return Settings{}, err
			}
		}
	}
	s := Settings{Database: v.GetString("database"), DataDir: v.GetString("data-dir"), Cluster: v.GetString("cluster")}
	if config.Exposed(file.ConfigFileUsed()) {
		s.exposed = file.ConfigFileUsed()
	}
	s.Fold.Only, s.Fold.Ignore = v.GetString("only"), v.GetStringSlice("ignore")
	for key, value := range map[string]*bool{"quiet": &s.Quiet, "utc": &s.UTC, "no-pager": &s.NoPager, "verbose": &s.Fold.Verbose, "events": &s.Fold.Events} {
		text := v.GetString(key)
		if *value, err = strconv.ParseBool(cmp.Or(text, "false")); err != nil {
			return s, fmt.Errorf("%s is %q: use true or false", key, text)
		}
	}
	if s.Color = v.GetString("color"); !slices.Contains(Colors, s.Color) {
		return s, fmt.Errorf("color is %q: use %s", s.Color, strings.Join(Colors, ", "))
	}
	if s.Database == "" {
		return s, errors.New("database is empty: set the PostgreSQL URL of the record, or " + config.Embedded)
	}
	return s, nil
}

// recorderDefaults reads the place of the record from the settings of the recorder on this machine.
func recorderDefaults(v *viper.Viper, environ []string) error {
	// The file may have keys that the recorder rejects: only two keys matter here.
	file, err := readFile(recorderName, variable(environ, recorderName, "config"))
	if err != nil {
		return err
	}
	for _, key := range sharedKeys {
		value := variable(environ, recorderName, key)
		if value == "" && file != nil {
			value = file.GetString(key)
		}
		if value != "" {
			if err := v.MergeConfigMap(map[string]any{key: value}); err != nil {
				return err
			}
		}
	}
	return nil
}

// readSettings reads the file, and rejects unknown keys.
func readSettings(program, named string) (*viper.Viper, error) {
	file, err := readFile(program, named)
	if err != nil || file == nil {
		return viper.New(), err
	}
	var errs []error
	for key := range file.AllSettings() {
		if !slices.Contains(SettingKeys, key) {
			errs = append(errs, fmt.Errorf("configuration file %s: unknown setting %s; use one of %s", file.ConfigFileUsed(), key, strings.Join(SettingKeys, ", ")))
		}
	}
	return file, errors.Join(errs...)
}

// readFile reads the named file, or the first that exists on the search path; nil if there is none.
func readFile(program, named string) (*viper.Viper, error) {
	path := named
	if path == "" {
		path = firstExisting(program)
	}
	if path == "" {
		return nil, nil
	}
	v := viper.New()
	return v, config.ReadFile(v, path)
}

func firstExisting(program string) string {
	paths := []string{"/etc/kuberewind/" + program + ".yaml"}
	if dir, err := os.UserConfigDir(); err == nil {
		paths = append([]string{filepath.Join(dir, "kuberewind", program+".yaml")}, paths...)
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// VariableName returns the environment variable of a setting of a program.
func VariableName(program, key string) string {
	return strings.ToUpper(program + "_" + strings.ReplaceAll(key, "-", "_"))
}

func variable(environ []string, program, key string) string {
	return lookup(environ, VariableName(program, key))
}

// lookup returns a variable by its name; "" if it is not set.
func lookup(environ []string, name string) (value string) {
	for _, pair := range environ {
		if k, v, ok := strings.Cut(pair, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// Kubernetes puts the addresses of Services into the environment of each container. A Service named replay sets
// REPLAY_SERVICE_HOST, REPLAY_PORT_80_TCP and similar variables, which are not settings.
var serviceVariable = regexp.MustCompile(`^REPLAY(_.*)?_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_.+)?)?)$`)

func unknownVariables(environ []string) error {
	known := []string{VariableName(ProgramName, "config"), VariableName(ProgramName, "pager")}
	for _, key := range SettingKeys {
		known = append(known, VariableName(ProgramName, key))
	}
	var errs []error
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "REPLAY_") && !slices.Contains(known, name) && !serviceVariable.MatchString(name) {
			errs = append(errs, fmt.Errorf("environment variable %s is not a setting; use one of %s", name, strings.Join(known, ", ")))
		}
	}
	return errors.Join(errs...)
}
