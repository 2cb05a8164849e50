package web_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/internal/retention"
	"github.com/kuberewind/kuberewind/internal/timelinetest"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// wordsOfDays are what filters of the record of days name.
func wordsOfDays() timelinetest.Words {
	return timelinetest.Words{
		Namespaces: []string{booktest.Namespace, "nowhere"},
		Resources:  []string{"pods", "deployments.apps", "nodes", "configmaps", "leases.coordination.k8s.io", "things.example.com"},
		Names:      []string{"web*", "*-1*", "n*", "*"},
		Managers:   []string{"nobody"},
		Paths:      []string{"/spec/replicas", "/spec", "/status", "/metadata/labels/app", "/data/n"},
	}
}

// A days is a record of seven days, in which something of each kind is not known.
type days struct {
	*booktest.Shop
	random *rand.Rand
	lives  map[string]int  // how many a resource and name had
	made   map[string]bool // whether it lives
	lost   time.Time       // the day whose partition is gone
	hurt   time.Time       // when the version occurred that is damaged
}

// hurtLabel is that of the object that is damaged, and of no other.
const hurtLabel = "app=hurt"

func newDays(t *testing.T, random *rand.Rand) *days {
	t.Helper()
	d := &days{Shop: booktest.NewShop(t), random: random, lives: map[string]int{}, made: map[string]bool{}}
	d.first()
	d.gaps()
	d.lost = booktest.Noon.AddDate(0, 0, 3).Truncate(24 * time.Hour)
	d.until(booktest.Noon.AddDate(0, 0, 4))
	d.paused()
	d.damaged(t)
	d.later()
	d.Lose(d.lost)
	prune(t, d.DB.Connect(t), booktest.Noon.AddDate(0, 0, 1))
	return d
}

// first is a day that is pruned later. On the second, the clock steps.
func (d *days) first() {
	d.ListBut("things", d.Delta(delta.Sync, delta.SourceList, "nodes", "n1", "", ready("True")), d.Delta(delta.Sync, delta.SourceList, "nodes", "n2", "", ready("True")))
	d.until(booktest.Noon.Add(20 * time.Hour))
	d.Sweep()
	d.Stepped(d.Now.Add(90 * time.Second))
	d.until(booktest.Noon.AddDate(0, 0, 1))
}

// gaps has Pods missed for three hours, and ConfigMaps not watched for one, in which nothing was missed.
func (d *days) gaps() {
	d.Commit(d.Interrupted("pods", "expired"))
	d.Now = d.Now.Add(time.Hour)
	d.Commit(d.Interrupted("configmaps", "unreachable"))
	d.Now = d.Now.Add(time.Hour)
	d.Commit(d.Resumed("configmaps"))
	d.Now = d.Now.Add(time.Hour)
	d.Commit(d.Listed("pods", "expired", delta.SourceRelist))
	d.until(booktest.Noon.AddDate(0, 0, 2))
}

// paused has no recorder for two hours. A recovered delta happened then.
func (d *days) paused() {
	d.Now = d.Now.Add(time.Hour)
	began := d.Now
	d.Pause(2 * time.Hour)
	var late []postgres.Item
	for i := range 10 {
		item := d.next()
		item.Occurred = began.Add(time.Duration(i+1) * 10 * time.Minute)
		late = append(late, item)
	}
	d.Commit(late...)
	d.until(booktest.Noon.AddDate(0, 0, 5))
}

// damaged has a version that cannot be read.
func (d *days) damaged(t *testing.T) {
	t.Helper()
	label := fmt.Sprintf(`"labels":{"app":%q},`, "hurt")
	d.Watched(delta.Added, "configmaps", "hurt", label, `,"data":{"n":"1"}`)
	d.Now = d.Now.Add(time.Minute)
	d.hurt = d.Now
	d.Watched(delta.Updated, "configmaps", "hurt", label, `,"data":{"n":"2"}`)
	d.Now = d.Now.Add(time.Minute)
	d.Watched(delta.Updated, "configmaps", "hurt", label, `,"data":{"n":"3"}`)
	damaged, err := d.DB.Connect(t).Exec(t.Context(), `UPDATE kuberewind.deltas_data SET digest = decode(md5('x'), 'hex') WHERE observed_at = $1`, d.hurt)
	require.NoError(t, err)
	require.Equal(t, int64(1), damaged.RowsAffected())
}

// later has Things recorded from the sixth day on, and Deployments forbidden at the end.
func (d *days) later() {
	d.Now = d.Now.Add(time.Hour)
	d.Commit(d.Delta(delta.Sync, delta.SourceList, "things", "t-1", "", ready("False")), d.Listed("things", "first_list", delta.SourceList))
	d.until(booktest.Noon.AddDate(0, 0, 6))
	d.Commit(d.Interrupted("deployments", "forbidden"))
	d.Now = d.Now.Add(40 * time.Minute)
	d.Watched(delta.Updated, "nodes", "n1", "", ready("Unknown"))
}

// until writes about forty deltas up to a time.
func (d *days) until(end time.Time) {
	for most := end.Sub(d.Now) / 20; d.Now.Add(most).Before(end); {
		d.Now = d.Now.Add(time.Duration(d.random.Int64N(int64(most))).Truncate(time.Microsecond))
		items := []postgres.Item{d.next()}
		for d.random.IntN(3) == 0 { // Some come at once.
			items = append(items, d.next())
		}
		d.Commit(items...)
	}
	d.Now = end
}

// next is a random delta.
func (d *days) next() postgres.Item {
	resource := []string{"pods", "pods", "deployments", "configmaps", "leases"}[d.random.IntN(5)]
	name := fmt.Sprintf("web-%d", d.random.IntN(12))
	kind, key := delta.Updated, resource+"/"+name
	switch {
	case !d.made[key]:
		kind = delta.Added
	case resource == "pods" && d.random.IntN(8) == 0:
		kind = delta.Deleted
	}
	d.made[key] = kind != delta.Deleted
	metadata := fmt.Sprintf(`"labels":{"app":%q},`, "web")
	if resource == "pods" {
		metadata += booktest.Owned("Deployment", "deployments", name)
	}
	item := d.Delta(kind, delta.SourceWatch, resource, name, metadata, d.fields(resource))
	if kind == delta.Added {
		d.lives[key]++
	}
	if n := d.lives[key]; n > 1 {
		item.Object.(*booktest.Object).Be(fmt.Sprint(booktest.UIDOf(resource, name), "-", n))
	}
	return item
}

func (d *days) fields(resource string) string {
	n := d.random.IntN(5)
	switch resource {
	case "pods":
		return []string{`,"status":{"phase":"Pending"}`, `,"status":{"phase":"Running"}`, waiting, waiting, `,"status":{"phase":"Failed"}`}[n]
	case "deployments":
		return fmt.Sprintf(`,"spec":{"replicas":%d},"status":{"replicas":%d}`, n, d.random.IntN(5))
	case "configmaps":
		return fmt.Sprintf(`,"data":{"n":"%d"}`, n)
	}
	return fmt.Sprintf(`,"spec":{"renewTime":"2026-03-10T12:00:0%d.000000Z"}`, n)
}

const waiting = `,"status":{"phase":"Running","containerStatuses":[{"name":"c","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}`

func ready(status string) string {
	return fmt.Sprintf(`,"status":{"conditions":[{"type":"Ready","status":%q}]}`, status)
}

// prune drops the days that ended by a time.
func prune(t *testing.T, db *pgx.Conn, end time.Time) {
	t.Helper()
	report, err := retention.Prune(t.Context(), db, retention.Options{OlderThan: time.Since(end.Truncate(24 * time.Hour)), Reason: "test"})
	require.NoError(t, err)
	require.Len(t, report.Dropped, 1, "%+v", report)
}
