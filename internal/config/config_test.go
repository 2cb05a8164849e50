package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/config"
)

// load reads a configuration as the program does. It sets variables of the process, because viper reads those.
func load(t *testing.T, file string, environment []string, args ...string) (config.Config, error) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, pair := range environment {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Flags(flags)
	if file != "" {
		path := filepath.Join(t.TempDir(), "recorder.yaml")
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
		args = append(args, "--config", path)
	}
	require.NoError(t, flags.Parse(args))
	c, _, err := config.Load(flags, environment)
	return c, err
}

func TestFlagsWinOverEnvironmentOverFileOverDefaults(t *testing.T) {
	c, err := load(t, "linger: 1s\nbatch-rows: 1\nlog-level: warn\n", nil)
	require.NoError(t, err)
	require.Equal(t, time.Second, c.Linger)
	require.Equal(t, config.Default().QueueSize, c.QueueSize)

	c, err = load(t, "linger: 1s\nbatch-rows: 1\nlog-level: warn\n", []string{"RECORDER_LINGER=2s", "RECORDER_BATCH_ROWS=2"}, "--linger", "3s")
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, c.Linger)
	require.Equal(t, 2, c.BatchRows)
	require.Equal(t, "warn", c.LogLevel)
}

func TestEveryKeyCanBeSetInEachPlace(t *testing.T) {
	values := map[string]string{
		"kubeconfig": "/k", "context": "c", "cluster-name": "n", "database": "postgres://h/d", "data-dir": "/d", "migrate": "false",
		"include": "pods", "exclude": "nodes", "secret-values": "record", "redact": "pods:/spec", "redaction-key-file": "/r",
		"queue-size": "2Mi", "spool-size": "3Gi", "spool-dir": "/s", "batch-rows": "7", "linger": "1m0s", "list-concurrency": "3", "checkpoint-every": "500", "drain-timeout": "2m0s", "listen": "h:1",
		"log-format": "json", "log-level": "debug", "leader-elect": "lease", "lease-namespace": "ln", "lease-name": "l",
		"lease-duration": "1m0s", "event-namespace": "en",
	}
	require.Len(t, values, len(config.Keys()))
	lists := map[string]bool{"include": true, "exclude": true, "redact": true}
	var args, environment []string
	var file strings.Builder
	for _, key := range config.Keys() {
		require.Contains(t, values, key)
		args = append(args, "--"+key+"="+values[key])
		environment = append(environment, "RECORDER_"+strings.ToUpper(strings.ReplaceAll(key, "-", "_"))+"="+values[key])
		value := values[key]
		if lists[key] {
			value = "[" + `"` + value + `"` + "]"
		}
		file.WriteString(key + ": " + value + "\n")
	}
	byFlag, err := load(t, "", nil, args...)
	require.NoError(t, err)
	byFile, err := load(t, file.String(), nil)
	require.NoError(t, err)
	byEnvironment, err := load(t, "", environment)
	require.NoError(t, err)
	require.Equal(t, byFlag, byFile)
	require.Equal(t, byFlag, byEnvironment)
	require.Equal(t, []string{"pods"}, byFlag.Include)
}

func TestRulesWithCommasComeThroughWhole(t *testing.T) {
	want := []string{"pods?tier in (a,b)", "nodes"}
	c, err := load(t, "", nil, "--exclude", want[0], "--exclude", want[1])
	require.NoError(t, err)
	require.Equal(t, want, c.Exclude)
	c, err = load(t, "exclude: ['pods?tier in (a,b)', nodes]\n", nil)
	require.NoError(t, err)
	require.Equal(t, want, c.Exclude)
	c, err = load(t, "", []string{"RECORDER_EXCLUDE=pods?tier=a,x!=y nodes"})
	require.NoError(t, err)
	require.Equal(t, []string{"pods?tier=a,x!=y", "nodes"}, c.Exclude)
}

func TestTheErrorNamesAnInvalidSetting(t *testing.T) {
	for _, c := range []struct {
		name, file  string
		environment []string
		args        []string
		want        string
	}{
		{name: "an unknown key", file: "batch-row: 1\n", want: "batch-row"},
		{name: "an unknown variable", environment: []string{"RECORDER_BATCH_ROW=1"}, want: "RECORDER_BATCH_ROW"},
		{name: "a bad duration", file: "linger: soon\n", want: "linger"},
		{name: "a negative duration", args: []string{"--linger=-1s"}, want: "linger"},
		{name: "a bad rule", args: []string{"--exclude=po[ds"}, want: "po[ds"},
		{name: "a bad path", args: []string{"--redact=secrets"}, want: "secrets"},
		{name: "a bad size", args: []string{"--queue-size=much"}, want: "queue-size"},
		{name: "a bad spool", args: []string{"--spool-size=much"}, want: "spool-size"},
		{name: "a small spool", args: []string{"--spool-size=1"}, want: "spool-size"},
		{name: "a small size", args: []string{"--queue-size=1"}, want: "queue-size"},
		{name: "a bad level", args: []string{"--log-level=loud"}, want: "log-level"},
		{name: "a bad format", args: []string{"--log-format=xml"}, want: "log-format"},
		{name: "a bad mode", args: []string{"--secret-values=no"}, want: "secret-values"},
		{name: "a bad election", args: []string{"--leader-elect=dice"}, want: "leader-elect"},
		{name: "a Lease for one", args: []string{"--leader-elect=lease"}, want: "--database"},
		{name: "a short Lease", args: []string{"--lease-duration=1s"}, want: "lease-duration"},
		{name: "a Lease without a name", args: []string{"--lease-name="}, want: "lease-name"},
		{name: "no database", args: []string{"--database="}, want: "database"},
		{name: "a missing file", args: []string{"--config=/nowhere.yaml"}, want: "/nowhere.yaml does not exist"},
		{name: "a missing file without an ending", args: []string{"--config=/nowhere"}, want: "/nowhere does not exist"},
		{name: "a file without an ending", args: []string{"--config=/dev/null"}, want: "/dev/null: its name must end in .yaml, .json or .toml"},
		{name: "a huge size", args: []string{"--queue-size=1e30"}, want: `queue-size "1e30" is beyond its maximum of 9223372036854775807`},
		{name: "a huge spool", args: []string{"--spool-size=1e30"}, want: `spool-size "1e30" is beyond its maximum of 9223372036854775807`},
		{name: "an empty rule", args: []string{"--include="}, want: "--include is empty"},
		{name: "an empty rule among others", args: []string{"--exclude=pods", "--exclude="}, want: "--exclude is empty"},
		{name: "an empty path", args: []string{"--redact="}, want: "--redact is empty"},
		{name: "a file that is no YAML", file: "a: [", want: "recorder.yaml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, c.file, c.environment, c.args...)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestVariablesOfAServiceNamedRecorderAreNotConfiguration(t *testing.T) {
	_, err := load(t, "", []string{
		"RECORDER_SERVICE_HOST=10.0.0.1", "RECORDER_SERVICE_PORT=80", "RECORDER_SERVICE_PORT_HTTP=80",
		"RECORDER_PORT=tcp://10.0.0.1:80", "RECORDER_PORT_80_TCP=tcp://10.0.0.1:80", "RECORDER_PORT_80_TCP_ADDR=10.0.0.1",
	})
	require.NoError(t, err)
}

func TestPasswordsAreMasked(t *testing.T) {
	for _, database := range []string{
		"postgres://u:hunter2@h/d", "postgres://h/d?user=u&password=hunter2", "host=h password=hunter2 user=u", "host=h password='hun\\'ter2 x' user=u",
		"postgres://u:hunter2@/d?host=/tmp/h", "postgres://u:hunter2@h1:5432,h2:5432/d", "postgres://u:hun%ter2@h/d", "postgres://u:hun@ter2@h/d",
		"postgres://h/d?sslkey=k&sslpassword=hunter2&x=y", `host=h password=hun\ ter2`,
		"postgres:///d?host=h&user=u&pass%77ord=hunter2", "postgresql://h/d?PASSWORD=hunter2", "postgres://h/d?ssl%70assword=hun%74er2&%zz=hunter2",
		"host=h sslpassword=hunter2", "postgres://admin@myserver:hunter2@h/d", "host = h password = 'hunter2'", "host=postgres://u:hunter2@h/d user=u",
	} {
		masked := config.MaskURL(database)
		require.NotContains(t, masked, "hunter2")
		require.NotContains(t, masked, "ter2")
		require.Contains(t, masked, "h")
	}
	for _, database := range []string{"u:hunter2@h/d", "u:hun:ter2@h/d?x=y", "u:hunter2@h:5432", "postgres:/u:hunter2@h/d", "host=h password='hunter2", "hunter2",
		"password='hunter2 application_name=http://x"} {
		require.Equal(t, "xxxxx", config.MaskURL(database))
	}
	for _, database := range []string{config.Embedded, "postgres://u@h:5432/d?application_name=a", "host=h user=u", "host=h dbname='a b' user=u sslmode=", "postgres://h/d?a=b&c"} {
		require.Equal(t, database, config.MaskURL(database))
	}
}
