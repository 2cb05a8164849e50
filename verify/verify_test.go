package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/verify"
)

// opened opens a record with the login of the URL.
func opened(t *testing.T, url string) *history.Record {
	t.Helper()
	r, err := history.Open(t.Context(), url, history.Options{})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// findings returns the findings of Record.
func findings(t *testing.T, r *history.Record) (found []verify.Finding, counts verify.Counts) {
	t.Helper()
	for f, err := range verify.Record(t.Context(), r, verify.Options{Counts: &counts}) {
		require.NoError(t, err)
		found = append(found, f)
	}
	require.Equal(t, int64(len(found)), counts.Findings)
	return found, counts
}

func thing(b *booktest.Shop, kind delta.Type, name, spec string) postgres.Item {
	return b.Delta(kind, delta.SourceWatch, "things", name, "", `,"spec":`+spec)
}

// point makes a checkpoint of the end of the record.
func point(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	_, err := checkpoint.NewMaker(pool, 1, history.Of(pool, history.Cluster{Number: 1, Name: "test"}).Source(), checkpoint.Options{Busy: 1}).MakeOne(t.Context())
	require.NoError(t, err)
}

// daysTest is the test that first needs daysRecord.
var daysTest *testing.T

// daysRecord writes a record of five days with a checkpoint: x changes on each day, and still changes only on the first.
func daysRecord(ctx context.Context, conn *pgx.Conn) error {
	url := conn.Config().ConnString()
	if err := pgtest.EmptyRecord(ctx, conn); err != nil {
		return err
	}
	b := booktest.NewShopOn(daysTest, url)
	defer b.Close()
	b.List()
	b.Commit(thing(b, delta.Added, "still", `1`))
	kind := delta.Added
	for i := range 5 {
		b.Commit(thing(b, kind, "x", strconv.Itoa(i)))
		kind = delta.Updated
		b.Commit(thing(b, kind, "x", strconv.Itoa(i+100)))
		b.Now = b.Now.AddDate(0, 0, 1)
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	point(daysTest, pool)
	return nil
}

func days(t *testing.T) *pgtest.Database {
	t.Helper()
	daysTest = t
	return pgtest.New(t, daysRecord)
}

func TestEachViolationIsFound(t *testing.T) {
	for damage, check := range map[string]verify.Check{
		`UPDATE kuberewind.deltas_data SET patch = jsonb_set(patch, '{0,old}', '"forged"') WHERE seq = 4`:            verify.CheckOld,
		`UPDATE kuberewind.deltas_data SET patch = jsonb_set(patch, '{0,value}', '"forged"') WHERE seq = 5`:          verify.CheckFold,
		`UPDATE kuberewind.deltas_data SET digest = decode(repeat('00', 16), 'hex') WHERE seq = 4`:                   verify.CheckFold,
		`UPDATE kuberewind.deltas_data SET object = '{"a":1}' WHERE seq = 1`:                                         verify.CheckFold,
		`UPDATE kuberewind.deltas_data SET object = NULL WHERE seq = 6`:                                              verify.CheckKeyframe,
		`UPDATE kuberewind.deltas_data SET patch = '[]' WHERE seq = 6`:                                               verify.CheckKeyframe,
		`DELETE FROM kuberewind.deltas_data WHERE seq = 5`:                                                           verify.CheckSeq,
		`DELETE FROM kuberewind.deltas_data WHERE seq = 11`:                                                          verify.CheckDays,
		`UPDATE kuberewind.deltas_data SET observed_at = observed_at - interval '1 minute' WHERE seq = 7`:            verify.CheckSeq,
		`UPDATE kuberewind.days SET first_seq = 5 WHERE day = '2026-03-11'`:                                          verify.CheckDays,
		`UPDATE kuberewind.days SET last_at = last_at + interval '1 second' WHERE day = '2026-03-11'`:                verify.CheckDays,
		`DELETE FROM kuberewind.days WHERE day = '2026-03-12'`:                                                       verify.CheckDays,
		`INSERT INTO kuberewind.ends VALUES (1, 1, 9)`:                                                               verify.CheckLives,
		`DELETE FROM kuberewind.living WHERE object_id = 1`:                                                          verify.CheckLives,
		`INSERT INTO kuberewind.living VALUES (1, 1, 9)`:                                                             verify.CheckLives,
		`UPDATE kuberewind.living SET stream = 7 WHERE object_id = 1`:                                                verify.CheckLives,
		`DELETE FROM kuberewind.lives WHERE object_id = 1`:                                                           verify.CheckLives,
		`UPDATE kuberewind.lives SET stream = 7 WHERE object_id = 1`:                                                 verify.CheckLives,
		`UPDATE kuberewind.lives SET owners = '{nobody}' WHERE object_id = 1`:                                        verify.CheckLives,
		`UPDATE kuberewind.streams SET last_seq = 9`:                                                                 verify.CheckStreams,
		`UPDATE kuberewind.streams SET last_rv = '12'`:                                                               verify.CheckStreams,
		`UPDATE kuberewind.heads SET seq = 12`:                                                                       verify.CheckSeq,
		`UPDATE kuberewind.checkpoint_blocks SET data = '\x00' WHERE block = 1`:                                      verify.CheckCheckpoint,
		`UPDATE kuberewind.checkpoints SET checkpoint = 10; UPDATE kuberewind.checkpoint_blocks SET checkpoint = 10`: verify.CheckCheckpoint,
		`ALTER TABLE kuberewind.deltas_data DETACH PARTITION kuberewind.deltas_p20260312`:                            verify.CheckPartition,
		`ALTER TABLE kuberewind.deltas_p20260313 RENAME TO deltas_p20270101`:                                         verify.CheckPartition,
	} {
		t.Run(damage, func(t *testing.T) {
			db := days(t)
			r := opened(t, db.URL())
			found, counts := findings(t, r)
			require.Empty(t, found)
			require.Equal(t, verify.Counts{
				Deltas: 11, Lives: 2, Live: 2, Patches: 9, Keyframes: 6, Days: 5, Streams: 6, Checkpoints: 1, CheckpointObjects: 2,
			}, counts)
			db.Exec(t, damage)
			found, _ = findings(t, r)
			var checks []verify.Check
			for _, f := range found {
				checks = append(checks, f.Check)
			}
			require.Contains(t, checks, check, found)
		})
	}
}

func TestAMissingPartitionIsOneFinding(t *testing.T) {
	db := days(t)
	db.Exec(t, `ALTER TABLE kuberewind.deltas_data DETACH PARTITION kuberewind.deltas_p20260312`)
	found, _ := findings(t, opened(t, db.URL()))
	require.Equal(t, []verify.Finding{{Check: verify.CheckPartition, Seq: 6, Text: "the partition of 2026-03-12 is missing, with seq 6 to 7"}}, found)
}

func TestADamagedCheckpointIsAFinding(t *testing.T) {
	for name, damage := range map[string]string{
		"a block is gone":            `DELETE FROM kuberewind.checkpoint_blocks WHERE block = 1`,
		"a block has other data":     `UPDATE kuberewind.checkpoint_blocks SET data = '\x00' WHERE block = 1`,
		"a block has another digest": `UPDATE kuberewind.checkpoint_blocks SET digest = sha256('') WHERE block = 1`,
		"the directory is gone":      `DELETE FROM kuberewind.checkpoint_blocks WHERE block = 0`,
		"another number of objects":  `UPDATE kuberewind.checkpoints SET objects = objects + 1`,
		"another digest":             `UPDATE kuberewind.checkpoints SET digest = sha256('')`,
	} {
		t.Run(name, func(t *testing.T) {
			db := days(t)
			db.Exec(t, damage)
			found, _ := findings(t, opened(t, db.URL()))
			require.Len(t, found, 1)
			require.Equal(t, verify.CheckCheckpoint, found[0].Check)
		})
	}
}

func TestACheckpointDeletedDuringVerificationIsNotAFinding(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	b.Commit(thing(b, delta.Added, "x", `1`))
	point(t, b.DB.Pool(t))
	var items []postgres.Item
	for i := range 200 {
		items = append(items, thing(b, delta.Updated, "x", strconv.Itoa(i)))
	}
	b.Commit(items...)
	point(t, b.DB.Pool(t))
	dropped := false
	drop := func(history.Progress) {
		dropped = true
		b.DB.Exec(t, `DELETE FROM kuberewind.checkpoints WHERE checkpoint > 1; DELETE FROM kuberewind.checkpoint_blocks WHERE checkpoint > 1`)
	}
	var counts verify.Counts
	for f, err := range verify.Record(t.Context(), opened(t, b.DB.URL()), verify.Options{Progress: drop, Counts: &counts}) {
		require.NoError(t, errors.Join(err, errors.New(f.Text)))
	}
	require.True(t, dropped)
	require.Equal(t, int64(2), counts.Checkpoints)
}

func TestRolledBackResourceVersionsAreNotAFinding(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	b.RV = 150
	b.Commit(thing(b, delta.Added, "x", `1`)) // 151
	b.Now = b.Now.Add(time.Minute)
	b.Commit(b.Interrupted("things", delta.CauseHistoryReversed))
	b.Now = b.Now.Add(time.Minute)
	b.RV = 120
	b.Commit(b.Listed("things", delta.CauseHistoryReversed, delta.SourceRelist))
	found, _ := findings(t, opened(t, b.DB.URL()))
	require.Empty(t, found)
	b.DB.Exec(t, `UPDATE kuberewind.gaps_data SET cause = 'expired' WHERE cause = 'history_reversed'`)
	found, _ = findings(t, opened(t, b.DB.URL()))
	require.Len(t, found, 1)
	require.Equal(t, verify.CheckStreams, found[0].Check)
}

// churn writes changes of many objects, over some hours: more objects than one block of a checkpoint holds.
func churn(b *booktest.Shop, round int) {
	for from := 0; from < 400; from += 100 {
		var items []postgres.Item
		for i := from; i < from+100; i++ {
			name, owner := fmt.Sprintf("o%03d", i), ""
			if i%7 == 0 {
				owner = booktest.Owned("Deployment", "deployments", "web")
			}
			switch {
			case round == 0:
				items = append(items, b.Delta(delta.Added, delta.SourceWatch, "things", name, owner, `,"spec":{"text":"\u0000"}`))
			case i > 0 && i%3 == 0 && i < 3*round: // deleted before
			case i == 3*round:
				items = append(items, thing(b, delta.Deleted, name, `{}`))
			case i < 200 && i%5 == round, round == 3:
				items = append(items, thing(b, delta.Updated, name, fmt.Sprintf(`{"round":%d,"list":[1,%d]}`, round, i)))
			}
		}
		b.Commit(items...)
	}
}

func TestAnOwnerAndAnAuditorFindNothingWrong(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	for round := range 4 {
		churn(b, round)
		point(t, b.DB.Pool(t))
		b.Now = b.Now.AddDate(0, 0, round%2)
	}
	found, counts := findings(t, opened(t, b.DB.URL()))
	require.Empty(t, found)
	require.Equal(t, int64(4), counts.Checkpoints)
	require.Equal(t, int64(397), counts.Live)
	var copied int
	require.NoError(t, b.DB.Pool(t).QueryRow(t.Context(), `
		SELECT count(*) FROM (SELECT FROM kuberewind.checkpoint_blocks WHERE block > 0 GROUP BY digest HAVING count(*) > 1) AS same`).Scan(&copied))
	require.Positive(t, copied, "unchanged blocks are copied")
	report := chain(t, b)
	require.Empty(t, report.Breaks)
	require.Equal(t, counts.Deltas, report.Deltas)

	auditor := opened(t, b.DB.Login(t, migrations.AuditorRole))
	found, _ = findings(t, auditor)
	require.Empty(t, found)
	_, err := verify.Chain(t.Context(), auditor.Pool(), "test")
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused, "the tables are closed to auditors")
	require.Equal(t, pgerrcode.InsufficientPrivilege, refused.Code)
}

func TestACallerMayStopAtTheFirstFinding(t *testing.T) {
	db := days(t)
	db.Exec(t, `UPDATE kuberewind.deltas_data SET digest = decode(repeat('00', 16), 'hex')`)
	var counts verify.Counts
	for _, err := range verify.Record(t.Context(), opened(t, db.URL()), verify.Options{Counts: &counts}) {
		require.NoError(t, err)
		break
	}
	require.Equal(t, int64(1), counts.Findings)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range verify.Record(ctx, opened(t, db.URL()), verify.Options{}) {
		require.ErrorIs(t, err, context.Canceled)
	}
}
