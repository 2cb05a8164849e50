package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/verify"
)

const canary = "hunter2"

// widened are pairs of rules. Only the rules after the restart hide the canary.
var widened = map[string]struct {
	resource      kube.Resource
	before, after rulesOfRedaction
}{
	"a path is added":                {kube.Resource{Name: "configmaps", Kind: "ConfigMap", Version: "v1", Namespaced: true}, rulesOfRedaction{redact.Hash, nil}, rulesOfRedaction{redact.Hash, []string{"configmaps:/data/token"}}},
	"Secrets are not recorded again": {kube.Resource{Name: "secrets", Kind: "Secret", Version: "v1", Namespaced: true}, rulesOfRedaction{redact.Record, nil}, rulesOfRedaction{redact.Hash, nil}},
	"a path of Secrets is added":     {kube.Resource{Name: "secrets", Kind: "Secret", Version: "v1", Namespaced: true}, rulesOfRedaction{redact.Record, []string{"secrets:/data/other"}}, rulesOfRedaction{redact.Record, []string{"secrets:/data/*"}}},
}

type rulesOfRedaction struct {
	secrets redact.Secrets
	paths   []string
}

// keeper returns an object that holds the canary in three places.
func keeper(t *testing.T, resource kube.Resource, name string, rv int, other string) *kube.Object {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": resource.Kind, "data": map[string]string{"token": canary, "other": other},
		"metadata": map[string]any{"name": name, "namespace": "a", "uid": "uid-of-" + name, "resourceVersion": fmt.Sprint(rv),
			"managedFields": []any{map[string]any{"manager": "kubectl", "operation": "Update", "time": "2026-03-01T03:00:00Z"}},
			"annotations":   map[string]string{"copy": canary, "kubectl.kubernetes.io/last-applied-configuration": `{"data":{"token":"` + canary + `"},"kind":"Secret"}`}}})
	require.NoError(t, err)
	o, err := kube.Restore(text)
	require.NoError(t, err)
	return &kube.Object{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta, JSON: text}
}

// restart ends the recorder and changes its rules.
func (s *swept) restart(rules rulesOfRedaction) {
	s.T.Helper()
	s.Die()
	s.Redact(rules.secrets, rules.paths...)
}

// seq returns the seq of the last delta.
func (s *swept) seq() (seq int64) {
	s.T.Helper()
	require.NoError(s.T, s.Conn.QueryRow(s.T.Context(), `SELECT seq FROM kuberewind.heads`).Scan(&seq))
	return seq
}

// since returns the rows after a seq: each with its type, source, name, and whether it carries a patch or a keyframe. It fails the test
// if a row holds the canary.
func (s *swept) since(seq int64) (rows []string) {
	s.T.Helper()
	var texts string
	require.NoError(s.T, s.Conn.QueryRow(s.T.Context(), `
		SELECT coalesce(string_agg(concat(patch, object, convert_from(exact, 'UTF8')), ' '), '') FROM kuberewind.deltas_data WHERE seq > $1`, seq).Scan(&texts))
	require.NotContains(s.T, texts, canary)
	found, err := s.Conn.Query(s.T.Context(), `
		SELECT concat_ws(' ', type, source, name, CASE WHEN patch IS NOT NULL THEN 'patch' END, CASE WHEN object IS NOT NULL THEN 'keyframe' END)
		FROM kuberewind.deltas WHERE seq > $1 ORDER BY deltas.seq`, seq)
	require.NoError(s.T, err)
	rows, err = pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(s.T, err)
	return rows
}

// folds restarts the recorder. It requires that each living object can be rebuilt without the canary, and that the chain is intact.
func (s *swept) folds(resource kube.Resource, rules rulesOfRedaction) {
	s.T.Helper()
	s.Config.Hooks.Unfolded = func(m postgres.Mismatch) { require.Fail(s.T, "it does not fold", "%+v", m) }
	s.restart(rules)
	st, _ := s.Feed(resource)
	for _, key := range st.Recorded().Known().ListKeys() {
		known, _, _ := st.Recorded().Known().GetByKey(key)
		require.NotContains(s.T, string(known.(postgres.KnownObject).Doc()), canary)
	}
	report, err := verify.Chain(s.T.Context(), s.Conn, "prod")
	require.NoError(s.T, err)
	require.Empty(s.T, report.Breaks)
}

func TestStricterRulesBringNoValueBack(t *testing.T) {
	for name, rules := range widened {
		for what, happens := range map[string]struct {
			do   func(t *testing.T, s *swept, fifo *deltafifo.FIFO)
			want []string
		}{
			"a change": {func(t *testing.T, _ *swept, fifo *deltafifo.FIFO) {
				require.NoError(t, fifo.Update(keeper(t, rules.resource, "one", 21, "b")))
				require.NoError(t, fifo.Update(keeper(t, rules.resource, "one", 22, "c")))
			}, []string{"Updated watch one keyframe", "Updated watch one patch"}},
			"a delete": {func(t *testing.T, _ *swept, fifo *deltafifo.FIFO) {
				require.NoError(t, fifo.Delete(keeper(t, rules.resource, "one", 21, "a")))
			}, []string{"Deleted watch one keyframe"}},
			"an object made again": {func(t *testing.T, _ *swept, fifo *deltafifo.FIFO) {
				again := keeper(t, rules.resource, "one", 21, "a")
				again.UID = "another"
				require.NoError(t, fifo.Add(again))
			}, []string{"Sync resync one keyframe", "Deleted inferred one", "Added watch one keyframe"}},
			"an inferred delete": {func(t *testing.T, _ *swept, fifo *deltafifo.FIFO) {
				require.NoError(t, fifo.Replace([]any{keeper(t, rules.resource, "two", 12, "a")}, "30"))
			}, []string{"Sync resync one keyframe", "Deleted inferred one"}},
			"a list that shows what was there": {func(t *testing.T, _ *swept, fifo *deltafifo.FIFO) {
				require.NoError(t, fifo.BeginReplace("expired", "", "20"))
				require.NoError(t, fifo.ReplacePage([]any{keeper(t, rules.resource, "one", 11, "a"), keeper(t, rules.resource, "two", 13, "a")}, "30"))
				require.NoError(t, fifo.EndReplace("30"))
			}, []string{"Sync relist two keyframe"}},
			"a sweep": {func(t *testing.T, s *swept, _ *deltafifo.FIFO) {
				s.round()
			}, []string{"Sync resync one keyframe", "Sync resync two keyframe"}},
		} {
			t.Run(name+": "+what, func(t *testing.T) {
				s := newSwept(t)
				s.Redact(rules.before.secrets, rules.before.paths...)
				_, fifo := s.Feed(rules.resource)
				require.NoError(t, fifo.Add(keeper(t, rules.resource, "one", 11, "a")))
				require.NoError(t, fifo.Add(keeper(t, rules.resource, "two", 12, "a")))
				require.NoError(t, fifo.Bookmark("20"))
				s.Pump()
				seq := s.seq()
				s.restart(rules.after)
				_, fifo = s.Feed(rules.resource)
				happens.do(t, s, fifo)
				s.Pump()
				require.ElementsMatch(t, happens.want, s.since(seq))
				s.folds(rules.resource, rules.after)
			})
		}
	}
}

// The sweeper does not wait for the next day: until then, checkpoints and answers would hold values that the rules hide.
func TestStricterRulesStoreObjectsAgainOnASweptDay(t *testing.T) {
	rules := widened["a path is added"]
	s := newSwept(t)
	s.Redact(rules.before.secrets, rules.before.paths...)
	_, fifo := s.Feed(rules.resource)
	require.NoError(t, fifo.Add(keeper(t, rules.resource, "one", 11, "a")))
	s.Pump()
	s.round()
	require.NoError(t, fifo.Bookmark("20"))
	s.Pump()
	_, sweeps := s.Recorded(1)
	require.Equal(t, []string{"2026-03-10 1"}, sweeps)

	seq := s.seq()
	s.restart(rules.after)
	_, fifo = s.Feed(rules.resource)
	require.Equal(t, 1, s.Sink.Rewritten())
	for range 3 {
		s.round()
		require.NoError(t, fifo.Bookmark(fmt.Sprint(s.seq()+30)))
		s.Pump()
	}
	require.Equal(t, []string{"Sync resync one keyframe"}, s.since(seq), "once")
	require.Zero(t, s.Sink.Rewritten())
	_, sweeps = s.Recorded(1)
	require.Equal(t, []string{"2026-03-10 1"}, sweeps)
	s.folds(rules.resource, rules.after)
	require.Zero(t, s.Sink.Rewritten(), "and not at each start")
}

func TestStricterRulesStoreObjectsAgainOfResourcesNoLongerFollowed(t *testing.T) {
	rules := widened["a path is added"]
	s := newSwept(t)
	s.Redact(rules.before.secrets, rules.before.paths...)
	_, fifo := s.Feed(rules.resource)
	require.NoError(t, fifo.Add(keeper(t, rules.resource, "one", 11, "a")))
	s.Pump()
	s.round()
	require.NoError(t, fifo.Bookmark("20"))
	s.Pump()
	seq := s.seq()
	s.restart(rules.after)
	s.round()
	s.Pump()
	require.Equal(t, []string{"Sync resync one keyframe"}, s.since(seq))
}

// A checkpoint copies living objects, so it waits until they are stored again under the current rules.
func TestNoCheckpointHoldsAHiddenValueOfAResourceNoLongerFollowed(t *testing.T) {
	rules := widened["a path is added"]
	s := newSwept(t)
	s.Redact(rules.before.secrets, rules.before.paths...)
	_, fifo := s.Feed(rules.resource)
	require.NoError(t, fifo.Add(keeper(t, rules.resource, "one", 11, "a")))
	s.Pump()
	s.restart(rules.after)
	lines := s.logs()
	s.run(s.recorder().makeCheckpoints)
	s.run(s.recorder().sweep)
	close(s.recorder().progress.recording)
	line := lines.next(t)
	require.Zero(t, s.checkpointsWithout(canary))
	require.Contains(t, line, `"a checkpoint is due; it waits`)

	s.Await()
	s.run(s.recorder().makeCheckpoints) // A new maker checks at once.
	require.Contains(t, lines.next(t), `"made a checkpoint"`)
	require.Equal(t, 1, s.checkpointsWithout(canary))
}

// logs returns the lines that the recorder logs from now on. Call it before the recorder runs.
func (s *swept) logs() logLines {
	lines := make(logLines, 10)
	s.log = slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return lines
}

type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func (l logLines) next(t *testing.T) (line string) {
	t.Helper()
	select {
	case line = <-l:
	case <-time.After(5 * time.Minute):
		require.Fail(t, "nothing is logged")
	}
	return line
}

// run runs a part of the recorder until the test ends.
func (s *swept) run(part func(context.Context) error) {
	s.T.Helper()
	ended := make(chan error, 1)
	go func() { ended <- part(s.T.Context()) }()
	s.T.Cleanup(func() { require.NoError(s.T, <-ended) })
}

// checkpointsWithout returns the number of checkpoints. It fails the test if a block holds the text.
func (s *swept) checkpointsWithout(text string) (count int) {
	s.T.Helper()
	rows, err := s.Conn.Query(s.T.Context(), `SELECT data FROM kuberewind.checkpoint_blocks WHERE block > 0`)
	require.NoError(s.T, err)
	blocks, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	require.NoError(s.T, err)
	decoder := checkpoint.NewDecoder()
	defer decoder.Close()
	for _, block := range blocks {
		objects, err := decoder.Block(block)
		require.NoError(s.T, err)
		for i := range objects {
			require.NotContains(s.T, string(objects[i].Doc), text)
		}
	}
	require.NoError(s.T, s.Conn.QueryRow(s.T.Context(), `SELECT count(*) FROM kuberewind.checkpoints`).Scan(&count))
	return count
}

func TestStricterRulesApplyToSpooledDeltas(t *testing.T) {
	for name, rules := range widened {
		for what, happens := range map[string]struct {
			do   func(t *testing.T, s *swept, fifo *deltafifo.FIFO)
			want []string
		}{
			"changes": {func(t *testing.T, _ *swept, fifo *deltafifo.FIFO) {
				require.NoError(t, fifo.Update(keeper(t, rules.resource, "one", 21, "b")))
				require.NoError(t, fifo.Add(keeper(t, rules.resource, "new", 22, "a")))
				require.NoError(t, fifo.Update(keeper(t, rules.resource, "new", 23, "b")))
				require.NoError(t, fifo.Delete(keeper(t, rules.resource, "two", 24, "a")))
			}, []string{"Updated watch one keyframe", "Added watch new keyframe", "Updated watch new patch", "Deleted watch two keyframe"}},
			"a sweep": {func(t *testing.T, s *swept, fifo *deltafifo.FIFO) {
				s.At = s.At.AddDate(0, 0, 1)
				s.round()
				require.NoError(t, fifo.Bookmark("30"))
			}, []string{"Sync resync one keyframe", "Sync resync two keyframe"}},
			"an inferred delete": {func(t *testing.T, s *swept, fifo *deltafifo.FIFO) {
				require.NoError(t, fifo.BeginReplace("expired", "", "20"))
				require.NoError(t, fifo.ReplacePage([]any{keeper(t, rules.resource, "two", 13, "a")}, "30"))
				require.NoError(t, fifo.EndReplace("30"))
			}, []string{"Sync relist two keyframe", "Sync resync one keyframe", "Deleted inferred one"}},
		} {
			t.Run(name+": "+what, func(t *testing.T) {
				s := newSwept(t)
				s.Redact(rules.before.secrets, rules.before.paths...)
				dir := t.TempDir()
				s.Memory = 1
				s.Spill(dir)
				_, fifo := s.Feed(rules.resource)
				require.NoError(t, fifo.Add(keeper(t, rules.resource, "one", 11, "a")))
				require.NoError(t, fifo.Add(keeper(t, rules.resource, "two", 12, "a")))
				require.NoError(t, fifo.Bookmark("20"))
				s.Pump()
				seq := s.seq()
				happens.do(t, s, fifo)
				require.Positive(t, s.Queue.Stats().Spooled)

				s.restart(rules.after)
				s.Spill(dir)
				s.Pump()
				require.ElementsMatch(t, happens.want, s.since(seq))
				s.folds(rules.resource, rules.after)
			})
		}
	}
}

// The recorder does not hash a hidden value twice, and does not store its object again.
func TestTheSameRulesChangeNothing(t *testing.T) {
	for name, rules := range widened {
		s := newSwept(t)
		s.Redact(rules.after.secrets, rules.after.paths...)
		_, fifo := s.Feed(rules.resource)
		require.NoError(t, fifo.Add(keeper(t, rules.resource, "one", 11, "a")))
		s.Pump()
		seq := s.seq()
		s.restart(rules.after)
		_, fifo = s.Feed(rules.resource)
		require.NoError(t, fifo.Replace([]any{keeper(t, rules.resource, "one", 11, "a")}, "20"))
		require.NoError(t, fifo.Update(keeper(t, rules.resource, "one", 21, "b")))
		s.Pump()
		require.Equal(t, []string{"Updated watch one patch"}, s.since(seq), name)
	}
}
