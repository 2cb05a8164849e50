package replay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/verify"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/timeline/activity"
)

func TestVerifyReportsAGoodRecord(t *testing.T) {
	b := story(t)
	got := b.replayed(t, "verify")
	require.Zero(t, got.code, got.err)
	require.Equal(t, `record: 15 deltas of 6 lives (4 alive) folded and compared with their digests; 8 patches, 7 keyframes, 4 streams, 1 days, 0 checkpoints of 0 objects
chain: 17 commits with 15 deltas, from the first commit on
verify found no fault in the record.
`, got.out)
}

func TestALaterChangeBreaksTheChain(t *testing.T) {
	b := story(t)
	b.damage(`UPDATE kuberewind.batches SET digest = sha256(digest) WHERE batch = 5`)
	got := b.replayed(t, "verify", "-o", "json")
	require.Equal(t, 1, got.code)
	var r verify.Report
	require.NoError(t, json.Unmarshal([]byte(got.out), &r))
	require.False(t, r.Holds)
	require.Equal(t, "chain", r.Findings[0].Check)
	require.Contains(t, r.Findings[0].Text, "commit 5: ")
	require.EqualValues(t, 15, r.Checked.Deltas)
}

func TestAnAuditorComparesAKeptHead(t *testing.T) {
	b := story(t)
	login := b.DB.Login(t, migrations.AuditorRole)
	var digest, first string
	require.NoError(t, b.DB.Pool(t).QueryRow(t.Context(), `
		SELECT max(encode(digest, 'hex')) FILTER (WHERE batch = 5), max(encode(digest, 'hex')) FILTER (WHERE batch = 1) FROM kuberewind.batches`).Scan(&digest, &first))
	check := func(head string, code int, text string) {
		t.Helper()
		got := b.replayedAs(t, login, "verify", "--head", head)
		require.Equal(t, code, got.code, got.err)
		require.Contains(t, got.out, text)
		require.Equal(t, 1, strings.Count(got.out, "\n"))
	}
	check("5:"+digest, 0, "Commit 5 has this digest. The newest commit is 17.")
	check("5:"+first, 1, "Commit 5 has another digest: "+digest)
	check("99:"+first, 1, "Commit 99 is not on record.")
	for _, wrong := range []string{"5", "5:ab", ":", ""} {
		got := b.replayedAs(t, login, "verify", "--head", wrong)
		require.Equal(t, 1, got.code)
		require.Contains(t, got.err, "--head: not a head of the chain", wrong)
	}
	got := b.replayedAs(t, login, "verify", "--head", "5:"+digest, "-o", "json")
	require.Contains(t, got.out, `"outcome": "equal"`)

	b.DB.Exec(t, `DELETE FROM kuberewind.batches WHERE batch <= 5`)
	check("5:"+digest, 1, "Commit 5 is missing, and no prune dropped it.")
	b.DB.Exec(t, `INSERT INTO kuberewind.prunes_data (cluster, day, last_batch, batch_digest, bytes, pruned_at, pruned_by, reason)
		SELECT cluster, '2026-03-09', 5, decode('`+digest+`', 'hex'), 1, now(), 'x', 'y' FROM kuberewind.clusters`)
	check("5:"+digest, 0, "Commit 5 has this digest, according to the prune of 2026-03-09. A prune row is not part of the chain.")
	check("5:"+first, 1, "Commit 5 has another digest, according to the prune of 2026-03-09: "+digest)
	check("1:"+first, 3, "Commit 1 cannot be checked: it was pruned with 2026-03-09.")
}

func TestVerifyFindsAChangedCount(t *testing.T) {
	b := story(t)
	login := b.DB.Login(t, migrations.AuditorRole)
	got := b.replayedAs(t, login, "verify", "--activity")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "activity: counted 0 deltas in 0 blocks again; 15 deltas have no precomputed counts\nThe counts are right.\n", got.out)

	pool, err := postgres.NewCounterPool(t.Context(), b.DB.Login(t, migrations.WriterRole), activity.Session)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	counter := activity.NewCounter(pool, history.Cluster{Number: 1}, activity.Options{Block: 5, Busy: 1})
	require.NoError(t, counter.CountDue(t.Context()))
	got = b.replayedAs(t, login, "verify", "--activity")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "activity: counted 15 deltas in 3 blocks again; 0 deltas have no precomputed counts\nThe counts are right.\n", got.out)

	const dropIt = "Some counts are wrong. Run DELETE FROM kuberewind.activity, and a recorder will recompute them. The record itself is not affected.\n"
	b.DB.Exec(t, `UPDATE kuberewind.activity SET counts[1] = counts[1] + 1 WHERE first_seq = 1 AND width = 'hour'`)
	got = b.replayedAs(t, login, "verify", "--activity")
	require.Equal(t, 1, got.code, got.err)
	require.Equal(t, `FAIL activity: seq 1: hour 2026-03-10T12:00:00Z, deployments.apps, class added, namespace shop, manager kubectl-create: 2 are on record as counted, and there are 1
activity: counted 15 deltas in 3 blocks again; 0 deltas have no precomputed counts
`+dropIt, got.out)
	require.NoError(t, counter.Rebuild(t.Context()))
	for name, damage := range map[string]string{
		"the seqs":                             `UPDATE kuberewind.activity SET last_seqs[1] = 999 WHERE first_seq = 6 AND width = 'minute'`,
		"its arrays have several lengths":      `UPDATE kuberewind.activity SET classes = classes || 'added'::text WHERE first_seq = 6 AND width = 'minute'`,
		"by minute, by hour or by delta is mi": `DELETE FROM kuberewind.activity WHERE first_seq = 6 AND width = 'minute'`,
		"a row of its counts by minute, by ho": `DELETE FROM kuberewind.activity WHERE first_seq = 6 AND width = 'delta'`,
		"by delta: its sequence does not end":  `UPDATE kuberewind.activity SET deltas = deltas || '\x00' WHERE first_seq = 6 AND width = 'delta'`,
		"by delta: seq 6 is on record as":      `UPDATE kuberewind.activity SET namespaces[1] = 'elsewhere' WHERE first_seq = 6 AND width = 'delta'`,
		"does not hold these seqs":             `UPDATE kuberewind.activity SET last_seq = 16 WHERE first_seq = 11`,
		"are counted in another row":           `UPDATE kuberewind.activity SET last_seq = 7 WHERE first_seq = 1`,
		"0 are on record as counted, and the":  `UPDATE kuberewind.activity SET namespaces[1] = 'elsewhere' WHERE first_seq = 1`,
	} {
		b.DB.Exec(t, damage)
		got = b.replayedAs(t, login, "verify", "--activity", "-o", "json")
		require.Equal(t, 1, got.code, damage)
		require.Contains(t, got.out, name)
		require.Contains(t, got.out, `"holds": false`)
		require.NoError(t, counter.Rebuild(t.Context()))
	}
	b.DB.Exec(t, `UPDATE kuberewind.activity SET classifier = 99`)
	got = b.replayedAs(t, login, "verify", "--activity")
	require.Zero(t, got.code)
	require.Contains(t, got.out, "activity: another version counted 15 deltas: these counts are not used, and a recorder will recompute them\n")
	got = b.replayed(t, "verify", "--activity", "--against-cluster")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "--activity checks nothing else: omit --head and --against-cluster")
	require.Contains(t, b.replayed(t, "verify").out, "verify found no fault in the record.")
}

// No real server continues a list without end, so this server is a double.
func TestAListThatNeverEndsIsNotCompared(t *testing.T) {
	b := story(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/namespaces/kube-system") {
			fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":%q}}`, b.Config.ClusterUID)
			return
		}
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"1","continue":"again"},"items":[]}`)
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"x",
		"contexts":[{"name":"x","context":{"cluster":"x"}}],"clusters":[{"name":"x","cluster":{"server":%q}}]}`, server.URL), 0o600))
	got := b.replayed(t, "verify", "--against-cluster", "--kubeconfig", kubeconfig)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, "cluster: configmaps: unproven: listing it failed: the server repeated a continue token after 1 pages: the list would never end\n", got.err)
}
