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

// Settings are what a flag, a variable REPLAY_… or the file can set.
type Settings struct {
	// Database is a PostgreSQL URL or DSN, or config.Embedded.
	Database string
	// DataDir holds the embedded database.
	DataDir string
	// Cluster is the name of the cluster in the record, "" if the record holds one only.
	Cluster string
	// Quiet leaves out notes and progress.
	Quiet bool
	// UTC reads times without a zone, and prints all times, in UTC.
	UTC bool
	// Color is auto, always or never.
	Color string
	// NoPager prints to a terminal at once.
	NoPager bool
	// Fold is what log, story and diff count only.
	Fold Fold

	exposed string // the file that config.Exposed is true of
}

// Fold says what of the changes is shown. Its keys have flags where a command takes them.
type Fold struct {
	Verbose, Events bool
	Only            string
	Ignore          []string
}

// SettingKeys are the keys of Settings.
var SettingKeys = []string{"cluster", "color", "data-dir", "database", "events", "ignore", "no-pager", "only", "quiet", "utc", "verbose"}

// ColorAuto colours what a person reads at a terminal.
const ColorAuto = "auto"

// Colors are what Settings.Color can be.
var Colors = []string{ColorAuto, "always", "never"}

// sharedKeys are the keys that default to the recorder's settings.
var sharedKeys = []string{"data-dir", "database"}

// Names of the two programs, as they stand in variables and names of files.
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

// loadSettings reads flags over environment over file over the recorder's settings over defaults.
func loadSettings(flags *pflag.FlagSet, environ []string) (Settings, error) {
	if err := unknownVariables(environ); err != nil {
		return Settings{}, err
	}
	v := viper.New()
	for _, key := range SettingKeys {
		flag := flags.Lookup(key)
		if flag == nil {
			continue // not one of this command's
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
	// Variables that are set to nothing say nothing.
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

// recorderDefaults takes from the recorder on this machine where the record is.
func recorderDefaults(v *viper.Viper, environ []string) error {
	// A file that the recorder would refuse is the recorder's affair: of it, two keys are of interest here.
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

// readSettings reads the file and refuses keys that name nothing.
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

// VariableName is the environment variable of a setting of a program.
func VariableName(program, key string) string {
	return strings.ToUpper(program + "_" + strings.ReplaceAll(key, "-", "_"))
}

func variable(environ []string, program, key string) string {
	return lookup(environ, VariableName(program, key))
}

// lookup gives a variable by its name; "" if it is not set.
func lookup(environ []string, name string) (value string) {
	for _, pair := range environ {
		if k, v, ok := strings.Cut(pair, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// Kubernetes puts the addresses of Services into the environment of each container: a Service named replay gives
// REPLAY_SERVICE_HOST, REPLAY_PORT_80_TCP and their like, which are nobody's configuration.
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
