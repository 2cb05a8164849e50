package migrations_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// coverage returns the rows of the view, one line each, in order.
func (r *recording) coverage(where string) []string {
	r.t.Helper()
	return column[string](r.t, r.reader, `SELECT concat_ws(' ', resource, CASE WHEN complete THEN 'complete' ELSE cause END,
			coalesce(to_char(from_at, 'DD"T"HH24:MI'), '-'), coalesce(to_char(to_at, 'DD"T"HH24:MI'), '-'), coalesce(from_rv, '-'), coalesce(to_rv, '-'), CASE WHEN live THEN 'live' END, outcome, nullif(detail, ''))
		FROM kuberewind.coverage WHERE `+where+` ORDER BY resource, from_at NULLS FIRST, complete`)
}

func TestCoverageOfALiveRecordHasNoEnd(t *testing.T) {
	r := record(t)
	st := r.stream("apps", "deployments", "Deployment", true)
	unlisted := r.stream("", "nodes", "Node", false)
	r.commit(postgres.Item{Stream: st, Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Replaced, Cause: "first_list", ToRV: "1000", Unchanged: 3}})
	r.now = r.now.Add(time.Hour)
	r.commit(watched(st, delta.Added, r.made("shop", "web", "uid-1", `{}`)))
	stopped := "no recorder has written since; one that runs again catches up on what the server still has"
	require.Equal(t, []string{
		"deployments first_list - 01T12:00 - 1000 relisted",
		"deployments complete 01T12:00 01T13:00 1000 1001",
		"deployments stopped 01T13:00 - 1001 - " + stopped,
		"nodes first_list - - - - listing",
	}, r.coverage("true"))

	r.now = time.Now()
	r.commit(watched(st, delta.Added, r.made("shop", "api", "uid-2", `{}`)))
	require.Equal(t, []string{
		"deployments first_list - 01T12:00 - 1000 relisted",
		"deployments complete 01T12:00 - 1000 1002 live",
		"nodes first_list - - - - live listing",
	}, r.coverage("true"))

	r.commit(postgres.Item{Stream: unlisted, Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Interrupted, Cause: "forbidden", Detail: "nodes is forbidden"}})
	require.Equal(t, []string{"nodes forbidden - - - - live nodes is forbidden"}, r.coverage("resource = 'nodes'"))
}

// The recorder may notice a rollback after another gap has ended.
func TestCoverageHasNoCompletePeriodWithinAGap(t *testing.T) {
	r := record(t)
	st := r.stream("apps", "deployments", "Deployment", true)
	for _, m := range []delta.Marker{
		{Cause: "first_list", ToRV: "1000"}, {Cause: "expired", FromTime: r.now.Add(time.Hour), ToRV: "1010"},
		{Cause: "history_reversed", FromRV: "1000", FromTime: r.now.Add(30 * time.Minute), ToRV: "1004"},
	} {
		if m.Cause != "first_list" {
			interrupted := m
			interrupted.Kind, interrupted.ToRV = delta.Interrupted, ""
			r.commit(postgres.Item{Stream: st, Kind: postgres.Marked, Marker: interrupted})
			r.now = r.now.Add(time.Hour)
		}
		m.Kind = delta.Replaced
		r.commit(postgres.Item{Stream: st, Kind: postgres.Marked, Marker: m})
		r.now = r.now.Add(time.Hour)
	}
	require.Equal(t, []string{
		"deployments first_list - 01T12:00 - 1000 relisted",
		"deployments complete 01T12:00 01T12:30 1000 1000",
		"deployments history_reversed 01T12:30 01T16:00 1000 1004 equal",
		"deployments expired 01T13:00 01T14:00 1000 1010 equal",
		"deployments complete 01T16:00 01T16:00 1004 1004",
	}, r.coverage("cause IS DISTINCT FROM 'stopped'"))
}

func TestCoverageOfANewResourceBeginsWithItsStream(t *testing.T) {
	r := record(t)
	st, err := r.sink.Stream(t.Context(), postgres.StreamSpec{Group: "example.com", Resource: "things", Kind: "Thing", Version: "v1", StartRV: "900"})
	require.NoError(t, err)
	r.now = time.Now()
	r.commit(watched(st.ID(), delta.Added, r.made("", "a", "uid-1", `{}`)))
	require.Equal(t, []string{"things complete 01T12:00 - - 1001 live"}, r.coverage("true"))
	require.Empty(t, r.warned())
	r.commit(postgres.Item{Stream: st.ID(), Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Interrupted, Cause: "not_found"}})
	require.Len(t, r.coverage("complete AND NOT live"), 1)
	require.Len(t, r.coverage("cause = 'not_found' AND live"), 1)
}

func TestCoverageShowsWhatTheConfigurationExcluded(t *testing.T) {
	r := record(t)
	deployments := r.stream("apps", "deployments", "Deployment", true)
	leases := r.stream("coordination.k8s.io", "leases", "Lease", true)
	r.listed(deployments)
	r.listed(leases)
	require.Empty(t, r.coverage("cause = 'configuration'"))

	apis := `{"items": [
		{"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [{"resource": "deployments", "verbs": ["list", "watch"]}]}]},
		{"metadata": {"name": "coordination.k8s.io"}, "versions": [{"version": "v1", "resources": [{"resource": "leases", "verbs": ["list", "watch"]}]}]},
		{"metadata": {"name": "batch"}, "versions": [{"version": "v1", "resources": [{"resource": "jobs", "verbs": ["watch", "list"]}, {"resource": "reviews", "verbs": ["create"]}]}]}]}`
	core := `{"items": [{"metadata": {}, "versions": [{"version": "v1", "resources": [{"resource": "secrets", "verbs": ["list", "watch"]}]}]}]}`
	for path, document := range map[string]string{"/apis": apis, "/api": core} {
		run(t, r.admin, `INSERT INTO kuberewind.documents VALUES (1, sha256($1::text::bytea), $1::text::json)`, document)
		run(t, r.admin, `INSERT INTO kuberewind.server_data VALUES (1, $1, $2, sha256($3::text::bytea))`, path, r.now, document)
	}
	r.cfg.ConfigJSON = []byte(`{"include": [], "exclude": ["leases", "j*.batch", "secrets.", "deployments/test"]}`)
	r.reopen(time.Hour)
	r.reopen(time.Hour) // with the same rules: one period
	r.now = time.Now()
	r.commit(watched(r.stream("apps", "deployments", "Deployment", true), delta.Added, r.made("shop", "web", "uid-1", `{}`)))
	require.Equal(t, []string{
		"deployments configuration 01T13:00 - - - live some of its objects: exclude deployments/test",
		"jobs configuration 01T13:00 - - - live exclude j*.batch",
		"leases configuration 01T12:00 - 1000 - live exclude leases",
		"secrets configuration 01T13:00 - - - live exclude secrets.",
	}, r.coverage("cause = 'configuration'"))
	require.Equal(t, []string{"deployments complete 01T12:00 - 1000 1001 live"}, r.coverage("complete"), "an excluded resource is not complete, although its stream is quiet")
}

func TestRulesExcludeTheSameInSQLAsInTheRecorder(t *testing.T) {
	_, conn := migrated(t)
	name := rapid.SampledFrom([]string{"pods", "po*", "*", "jobs", "[jp]o*", "leases"})
	group := rapid.SampledFrom([]string{"", ".", ".batch", ".*", ".*.k8s.io", ".coordination.k8s.io"})
	rule := rapid.Custom(func(t *rapid.T) string {
		return name.Draw(t, "name") + group.Draw(t, "group") + rapid.SampledFrom([]string{"", "/*", "/shop", "/*?", "?app=x", "/shop?app=x"}).Draw(t, "rest")
	})
	rapid.Check(t, func(r *rapid.T) {
		include, exclude := rapid.SliceOfN(rule, 0, 2).Draw(r, "include"), rapid.SliceOfN(rule, 0, 2).Draw(r, "exclude")
		rules, err := filter.New(include, exclude)
		require.NoError(r, err)
		config, err := json.Marshal(map[string]any{"include": include, "exclude": exclude})
		require.NoError(r, err)
		resource := rapid.SampledFrom([]schema.GroupResource{{Resource: "pods"}, {Group: "batch", Resource: "jobs"}, {Group: "coordination.k8s.io", Resource: "leases"}}).Draw(r, "resource")
		var whole, some bool
		require.NoError(r, conn.QueryRow(r.Context(), "SELECT whole, rules IS NOT NULL FROM kuberewind.record_left_out($1::text::jsonb, $2, $3)",
			string(config), resource.Group, resource.Resource).Scan(&whole, &some))
		require.Equal(r, !rules.Resource(resource), whole, fmt.Sprint(include, exclude, resource))
		require.Equal(r, whole || !rules.For(resource).Everything(), some, fmt.Sprint(include, exclude, resource))
	})
}
