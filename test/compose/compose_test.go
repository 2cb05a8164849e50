// Package compose_test holds docker-compose.yml, Dockerfile and .dockerignore against the program. It needs no engine of containers.
package compose_test

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/pgtest"
)

const root = "../.."

// duration is what both Go and Compose write as 30s or 2m.
type duration time.Duration

func (d *duration) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(s)
	*d = duration(parsed)
	return err
}

// volume is in short syntax (a string) or in long syntax.
type volume struct {
	Short    string
	Type     string
	Source   string
	Target   string
	ReadOnly bool `json:"read_only"`
	Bind     struct {
		CreateHostPath *bool `json:"create_host_path"`
	}
}

func (v *volume) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &v.Short) == nil {
		v.Source, v.Target, _ = strings.Cut(v.Short, ":")
		return nil
	}
	type long volume
	return json.Unmarshal(text, (*long)(v))
}

type service struct {
	Image       string
	User        string
	ReadOnly    bool     `json:"read_only"`
	CapDrop     []string `json:"cap_drop"`
	SecurityOpt []string `json:"security_opt"`
	NetworkMode string   `json:"network_mode"`
	Environment map[string]string
	Ports       []string
	Volumes     []volume
	Grace       duration                   `json:"stop_grace_period"`
	Healthcheck struct{ Test []string }    `json:"healthcheck"`
	DependsOn   map[string]json.RawMessage `json:"depends_on"`
}

type project struct {
	Services map[string]service
	Volumes  map[string]any
}

// read gives docker-compose.yml, parsed and as it stands.
func read(t *testing.T) (project, string) {
	t.Helper()
	text := file(t, "docker-compose.yml")
	var p project
	require.NoError(t, yaml.Unmarshal([]byte(text), &p))
	require.Contains(t, p.Services, "postgres")
	require.Contains(t, p.Services, "recorder")
	return p, text
}

func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// settings are the variables that the recorder knows.
func settings() map[string]bool {
	known := map[string]bool{"RECORDER_CONFIG": true}
	for _, key := range config.Keys() {
		known["RECORDER_"+strings.ToUpper(strings.ReplaceAll(key, "-", "_"))] = true
	}
	return known
}

var (
	settingName   = regexp.MustCompile(`\bRECORDER_[A-Z_]+`)
	interpolation = regexp.MustCompile(`\$\{(\w+)(?::?[-?]([^}]*))?\}`)
)

// interpolate is docker compose's result for a value when nothing is set but values.
func interpolate(text string, values map[string]string) string {
	return interpolation.ReplaceAllStringFunc(text, func(match string) string {
		parts := interpolation.FindStringSubmatch(match)
		if value, ok := values[parts[1]]; ok {
			return value
		}
		return parts[2]
	})
}

// A shell with the environment that docker-compose.yml asks for must still be able to run the recorder itself. The recorder
// refuses RECORDER_ variables that it does not know. So comments and ${…} count too.
func TestEverySettingNamedIsOne(t *testing.T) {
	known := settings()
	for _, name := range []string{"docker-compose.yml", "Dockerfile"} {
		found := settingName.FindAllString(file(t, name), -1)
		assert.NotEmpty(t, found, name)
		for _, variable := range found {
			assert.True(t, known[variable], "%s names %s, which is no setting", name, variable)
		}
	}
}

func TestRecorderHasFewRights(t *testing.T) {
	p, _ := read(t)
	for _, name := range []string{"recorder", "migrate"} {
		service := p.Services[name]
		assert.True(t, service.ReadOnly, "read_only")
		assert.Equal(t, []string{"ALL"}, service.CapDrop)
		assert.Contains(t, service.SecurityOpt, "no-new-privileges:true")
		assertNotRoot(t, interpolate(service.User, nil))
	}
	assertNotRoot(t, only(t, "Dockerfile", `(?m)^USER (.+)$`))
}

func assertNotRoot(t *testing.T, user string) {
	t.Helper()
	for _, id := range strings.Split(user, ":") {
		number, err := strconv.Atoi(id)
		if assert.NoError(t, err, "user %q: the image has no /etc/passwd to look a name up in", user) {
			assert.Positive(t, number, "user %q is root", user)
		}
	}
}

// only is what the one match of pattern in the file has in its first group.
func only(t *testing.T, name, pattern string) string {
	t.Helper()
	matches := regexp.MustCompile(pattern).FindAllStringSubmatch(file(t, name), -1)
	require.Len(t, matches, 1, "%s in %s", pattern, name)
	return matches[0][1]
}

func TestPostgreSQLIsNewEnough(t *testing.T) {
	p, _ := read(t)
	name, tag, _ := strings.Cut(p.Services["postgres"].Image, ":")
	assert.Equal(t, "postgres", name)
	major, err := strconv.Atoi(regexp.MustCompile(`^\d+`).FindString(tag))
	require.NoError(t, err, "the tag %q pins no major version, and one does not start on the data of another", tag)
	assert.GreaterOrEqual(t, major, 17)
	// From 18 on the image keeps its data elsewhere, and what is mounted here would not be kept.
	if assert.NotEmpty(t, p.Services["postgres"].Volumes); major < 18 {
		assert.Equal(t, "/var/lib/postgresql/data", p.Services["postgres"].Volumes[0].Target)
	} else {
		assert.Equal(t, "/var/lib/postgresql", p.Services["postgres"].Volumes[0].Target)
	}
}

func TestOnlyTheRecorderReachesTheDatabase(t *testing.T) {
	p, text := read(t)
	const port = "54321"
	values := map[string]string{"POSTGRES_PORT": port}
	require.Len(t, p.Services["postgres"].Ports, 1)
	assert.Equal(t, "127.0.0.1:"+port+":5432", interpolate(p.Services["postgres"].Ports[0], values))

	owner := p.Services["postgres"].Environment
	for name, login := range map[string]struct{ user, password string }{
		"migrate":  {owner["POSTGRES_USER"], owner["POSTGRES_PASSWORD"]},
		"recorder": {"recorder", owner["WRITER_PASSWORD"]},
	} {
		service := p.Services[name]
		database, err := url.Parse(interpolate(service.Environment["RECORDER_DATABASE"], values))
		require.NoError(t, err)
		assert.Equal(t, "host", service.NetworkMode)
		assert.Equal(t, "127.0.0.1:"+port, database.Host)
		assert.Equal(t, login.user, database.User.Username())
		assert.Equal(t, "/"+owner["POSTGRES_DB"], database.Path)
		_, inURL := database.User.Password()
		assert.False(t, inURL, "a password in a URL needs escapes")
		assert.Equal(t, login.password, service.Environment["PGPASSWORD"])
	}

	// No password has a default, and a missing one is said by docker compose.
	passwords := regexp.MustCompile(`\$\{(POSTGRES|WRITER)_PASSWORD[^}]*\}`).FindAllString(text, -1)
	assert.Len(t, passwords, 4)
	for _, match := range passwords {
		assert.Contains(t, match, ":?", "a missing password must be an error")
	}
}

// The recorder's login writes the record and owns none of it, even if it gives up the role it works under.
func TestTheRecordersLoginOwnsNothing(t *testing.T) {
	p, _ := read(t)
	assert.JSONEq(t, `{"condition":"service_completed_successfully"}`, string(p.Services["recorder"].DependsOn["migrate"]))
	assert.Equal(t, "false", p.Services["recorder"].Environment["RECORDER_MIGRATE"])

	server := pgtest.StartServer(t)
	database := server.New(t, nil)
	admin, err := url.Parse(database.URL())
	require.NoError(t, err)
	password, _ := admin.User.Password()
	script := exec.Command("sh", filepath.Join(root, "deploy/compose/10-logins.sh"))
	script.Env = append(os.Environ(), "PGHOST="+admin.Query().Get("host"), "PGPORT="+admin.Query().Get("port"), "PGPASSWORD="+password,
		"POSTGRES_USER="+admin.User.Username(), "POSTGRES_DB="+database.Name(), "WRITER_PASSWORD=it's a \"password\"")
	out, err := script.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, pgtest.EmptyRecord(t.Context(), database.Connect(t)))

	login := *admin
	login.User = url.UserPassword("recorder", `it's a "password"`)
	conn, err := pgx.Connect(t.Context(), login.String())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	_, err = conn.Exec(t.Context(), `SET ROLE kuberewind_writer; UPDATE kuberewind.heads SET seq = seq; RESET ROLE`)
	require.NoError(t, err)
	for _, forbidden := range []string{"DELETE FROM kuberewind.deltas_data", "UPDATE kuberewind.batches SET digest = digest", "DROP SCHEMA kuberewind CASCADE", "CREATE ROLE other"} {
		_, err := conn.Exec(t.Context(), forbidden)
		require.ErrorContains(t, err, "42501", forbidden)
	}
}

// While the image makes a database, a server answers on the socket that takes no connections over TCP.
func TestReadyMeansOverTCP(t *testing.T) {
	p, _ := read(t)
	assert.Subset(t, p.Services["postgres"].Healthcheck.Test, []string{"-h", "127.0.0.1"})
	assert.JSONEq(t, `{"condition":"service_healthy"}`, string(p.Services["migrate"].DependsOn["postgres"]))
}

func TestGraceIsLongerThanTheDrain(t *testing.T) {
	p, _ := read(t)
	assert.Greater(t, time.Duration(p.Services["recorder"].Grace), config.Default().DrainTimeout)
}

// All that must outlive the container is in a volume, at the place where the program keeps it. The recorder's user may write
// there: a new volume takes the mode of the image's folder.
func TestRedactionKeyIsKept(t *testing.T) {
	p, _ := read(t)
	dataDir := only(t, "Dockerfile", `\bRECORDER_DATA_DIR=(\S+)`)
	var kept bool
	for _, v := range p.Services["recorder"].Volumes {
		kept = kept || v.Target == dataDir && hasKey(p.Volumes, v.Source)
	}
	assert.True(t, kept, "no volume at %s", dataDir)

	dockerfile := file(t, "Dockerfile")
	assert.Contains(t, dockerfile, "chmod 1777 /root-fs"+dataDir)
	assert.Contains(t, dockerfile, "COPY --from=build /root-fs/ /\n", "copied by itself, the folder would lose its mode")
}

func hasKey(m map[string]any, key string) bool {
	_, ok := m[key]
	return ok
}

func TestKubeconfigIsMountedReadOnly(t *testing.T) {
	p, _ := read(t)
	recorder := p.Services["recorder"]
	for _, v := range recorder.Volumes {
		if v.Target != recorder.Environment["KUBECONFIG"] {
			continue
		}
		assert.True(t, v.ReadOnly)
		assert.Equal(t, "~/.kube/config", interpolate(v.Source, nil))
		if assert.NotNil(t, v.Bind.CreateHostPath, "a missing file would be made, as a folder") {
			assert.False(t, *v.Bind.CreateHostPath)
		}
		return
	}
	assert.Fail(t, "no volume at "+recorder.Environment["KUBECONFIG"])
}

// The image is built by the Go that go.mod asks for: images of Go do not fetch another.
func TestTheImageIsBuiltByTheGoOfTheModule(t *testing.T) {
	image := only(t, "Dockerfile", `(?m)^FROM golang:(\S+) AS build$`)
	wanted := only(t, "go.mod", `(?m)^go (\d+\.\d+)`)
	assert.Equal(t, wanted, image)
}

// Everything that the program is built from gets into the build: no folder with a package of ours is ignored.
func TestNothingIsMissingFromTheBuild(t *testing.T) {
	var ignored []string
	for line := range strings.Lines(file(t, ".dockerignore")) {
		if pattern := strings.TrimSpace(line); pattern != "" && !strings.HasPrefix(pattern, "#") {
			ignored = append(ignored, strings.TrimPrefix(pattern, "/"))
		}
	}
	for _, dir := range []string{"cmd", "deltafifo", "go.mod", "go.sum", "internal", "kube", "migrations", "patch", "reflector", "sink"} {
		_, err := os.Stat(filepath.Join(root, dir))
		require.NoError(t, err)
		for _, pattern := range ignored {
			match, err := filepath.Match(pattern, dir)
			require.NoError(t, err, "pattern %q", pattern)
			assert.False(t, match, "%s is ignored by %q", dir, pattern)
		}
	}
	for _, pattern := range []string{".*", "**/*_test.go"} {
		assert.Contains(t, ignored, pattern)
	}
}
