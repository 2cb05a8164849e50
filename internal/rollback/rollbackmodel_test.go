package rollback

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/canonical"
	"github.com/kuberewind/kuberewind/internal/times"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// The model has two etcds. One is put back now and then, the other never. An API server whose caches lag serves
// streams of both. A recorder records them, and may be killed at any step. In the end, each version that is not on
// record lies in a gap.

// modelVersion is a version of some history.
type modelVersion struct {
	*kube.Object
	stream        int
	at            time.Time
	historyNumber int // how often its etcd had been put back before
	deleted       bool
	recorded      bool
	observed      time.Time // when it was queued for the record
	shown         bool      // a watch served it, or a list that is on record as a whole
}

func (w *modelVersion) revision() int { n, _ := strconv.Atoi(w.ResourceVersion); return n }

// modelEtcd is an etcd with the API server's caches of it.
type modelEtcd struct {
	archive
	all           []*modelVersion // of all histories
	history       []*modelVersion // of the present history
	saved         int             // how many of them the snapshot has
	historyNumber int
	lostVersions  [][]*modelVersion // the versions that each rollback has lost
	ahead         []bool            // for each rollback, whether a stream was ahead of the snapshot
	uids          int
}

type modelGap struct {
	from         int
	since, to    time.Time
	beginHistory int // the number of the history in which it begins
	endHistory   int // the number of the history in which it ends
	cause        delta.Cause
	open         bool
}

// modelStream is one stream: the server's part, the record's, and the recorder's.
type modelStream struct {
	number int
	etcd   *modelEtcd
	object *modelVersion // its newest version

	tracker       *Stream
	fifo          *deltafifo.FIFO
	watching      bool
	at            int             // the watch has delivered all versions up to there
	pending       []*modelVersion // versions that the watch has still to deliver
	rollbackProof string          // the proof, if it was rolled back

	position   int // on record
	positioned time.Time
	living     *modelVersion
	listed     *modelVersion // the version of a list that is not wholly on record yet
	gaps       []modelGap
	rows       []*modelVersion // the recorded versions of watches
}

type model struct {
	t          *testing.T
	etcds      [2]*modelEtcd
	streams    []*modelStream
	all        *Streams
	queue      *deltafifo.Queue
	old        bool // the API server was not restarted with its etcd
	probed     time.Time
	entries    map[*kube.Object]*modelVersion
	writes     int
	servedLost bool      // a rollback has lost a served version
	killed     bool      // a recorder was killed
	verified   time.Time // the time on record (Streams.Verified)
}

func newModel(t *testing.T) *model {
	m := &model{t: t, entries: map[*kube.Object]*modelVersion{}, verified: time.Now()}
	for i := range m.etcds {
		m.etcds[i] = &modelEtcd{archive: archive{now: 100 + 100_000*i}}
	}
	for i := range 5 {
		m.streams = append(m.streams, &modelStream{number: i, etcd: m.etcds[i/4]})
	}
	for _, s := range m.streams {
		m.write(s, false)
	}
	m.begin(time.Time{})
	for _, s := range m.streams {
		m.list(s, delta.CauseFirstList, "")
	}
	m.commit(1000)
	return m
}

// begin starts a recorder.
func (m *model) begin(verified time.Time) {
	m.all, m.queue = New(Options{Verified: verified}), deltafifo.New(deltafifo.Options{})
	allAdded := make(chan struct{})
	close(allAdded)
	m.all.allAdded, m.probed = allAdded, time.Now()
	byStream := map[*Stream]*modelStream{}
	for _, s := range m.streams {
		s.tracker = m.all.Add(Spec{Name: "stream" + strconv.Itoa(s.number)})
		s.tracker.ListWith(s.etcd.lister)
		s.tracker.ask.canonical = canonical.Transformer(nil)
		byStream[s.tracker] = s
	}
	m.all.queueGaps = func(ctx context.Context, proof string, gaps []Gap) error {
		var late []deltafifo.Interruption
		for _, g := range gaps {
			late = append(late, deltafifo.Interruption{Stream: byStream[g.Stream], Begin: g.Begin})
		}
		return m.queue.InterruptTogether(ctx, delta.CauseHistoryReversed, proof, late)
	}
	for _, s := range m.streams {
		s.fifo = m.queue.FIFO(deltafifo.FIFOOptions{Stream: s})
		s.watching, s.pending, s.rollbackProof = false, nil, ""
		if s.position == 0 {
			s.tracker.Follow(s.notified)
			continue
		}
		s.recall(m)
	}
}

func (s *modelStream) notified(proof string) { s.rollbackProof = proof }

// recall takes over what is on record.
func (s *modelStream) recall(m *model) {
	unproven, last := []postgres.Version(nil), []postgres.Version(nil)
	var newest []string
	for _, row := range s.rows {
		if row.historyNumber != s.historyOnRecord() {
			continue
		}
		newest = append(newest, row.ResourceVersion)
		v := postgres.Version{Namespace: "ns", Name: row.Name, UID: string(row.UID), ResourceVersion: row.ResourceVersion, Observed: row.observed}
		switch {
		case row.deleted:
		case row.observed.Before(m.all.verifiedUntil):
			last = []postgres.Version{v}
		default:
			unproven, last = append(unproven, v), nil
		}
	}
	s.tracker.Recall(Recalled{Unverified: append(last, unproven...)})
	s.tracker.Recall(Recalled{Position: strconv.Itoa(s.position), Newest: newest})
	if l := s.living; l != nil {
		s.tracker.all.mu.Lock()
		s.tracker.living.remember(versionOf(l.Object, uint64(l.revision())), false)
		s.tracker.samples.addPendingLocked(recalledSampleLocked(s.tracker))
		s.tracker.all.mu.Unlock()
	}
	if g := s.openGap(); g != nil {
		s.tracker.Recall(Recalled{RolledBack: true})
		s.rollbackProof = "on record"
	}
	s.tracker.Follow(s.notified)
	s.at = s.position
}

// historyOnRecord returns the number of the history after the last rollback whose gap is closed.
func (s *modelStream) historyOnRecord() (closed int) {
	for _, g := range s.gaps {
		if g.cause == delta.CauseHistoryReversed && !g.open {
			closed = max(closed, g.endHistory)
		}
	}
	return closed
}

func (s *modelStream) openGap() *modelGap {
	if n := len(s.gaps); n > 0 && s.gaps[n-1].open {
		return &s.gaps[n-1]
	}
	return nil
}

// write creates, changes or deletes the stream's object.
func (m *model) write(s *modelStream, deletes bool) {
	e := s.etcd
	e.now++
	deletes = deletes && s.object != nil
	var uid types.UID
	switch {
	case s.object != nil:
		uid = s.object.UID
	default:
		e.uids++
		uid = types.UID(fmt.Sprint("uid", e.uids))
	}
	m.writes++
	o, kept := m.version(s, uid), m.version(s, uid)
	_, err := canonical.Transformer(nil)(o)
	require.NoError(m.t, err)
	w := &modelVersion{Object: o, stream: s.number, at: time.Now(), historyNumber: e.historyNumber, deleted: deletes}
	m.entries[o] = w
	e.all, e.history = append(e.all, w), append(e.history, w)
	if s.object = w; deletes {
		kept, s.object = servedAs(o.Name, "", e.now), nil
	}
	e.versions = append(e.versions, kept)
	if s.watching && w.revision() > s.cacheAt() {
		s.pending = append(s.pending, w)
	}
}

// version returns a version that is written now. Each version has a time of its own.
func (m *model) version(s *modelStream, uid types.UID) *kube.Object {
	at := time.Unix(int64(m.writes), 0).UTC().Format(time.RFC3339)
	return titled(servedAs("object"+strconv.Itoa(s.number), string(uid), s.etcd.now), "", at)
}

// cacheAt returns the revision up to which the cache has given its watch all versions.
func (s *modelStream) cacheAt() int {
	if n := len(s.pending); n > 0 {
		return s.pending[n-1].revision()
	}
	return s.at
}

// deliver serves some of the versions that the cache has.
func (m *model) deliver(s *modelStream, most int) {
	for ; s.watching && len(s.pending) > 0 && most > 0; most-- {
		w := s.pending[0]
		s.pending, s.at = s.pending[1:], w.revision()
		if w.deleted {
			require.NoError(m.t, s.fifo.Delete(w.Object))
		} else {
			require.NoError(m.t, s.fifo.Update(w.Object))
			defer s.tracker.Reached(w.ResourceVersion)
		}
		s.tracker.Saw(w.Object, w.deleted)
		if w.historyNumber < s.etcd.historyNumber && !slices.Contains(s.etcd.history, w) {
			m.servedLost = true
		}
	}
}

// rollBack puts the first etcd back to its snapshot, once. Until the lists after that are on record, a second
// rollback would look like the first.
func (m *model) rollBack(restarts bool) {
	e := m.etcds[0]
	if e.historyNumber > 0 {
		return
	}
	kept := e.history[:min(e.saved, len(e.history))]
	last, ahead := 100, false
	if len(kept) > 0 {
		last = kept[len(kept)-1].revision()
	}
	for _, s := range m.streams {
		if s.etcd == e && !restarts {
			m.deliver(s, 1000) // The caches still have these versions.
		}
		ahead = ahead || s.etcd == e && s.at > last
	}
	m.servedLost = m.servedLost || ahead
	e.ahead = append(e.ahead, ahead)
	e.lostVersions = append(e.lostVersions, slices.Clone(e.history[len(kept):]))
	e.fails = errDown
	time.Sleep(2 * servingPause)
	e.fails = nil
	e.history, e.now = slices.Clone(kept), last
	e.historyNumber++
	for _, s := range m.streams {
		if s.etcd != e {
			continue
		}
		s.object = nil
		for _, w := range kept {
			if w.stream == s.number {
				if s.object = w; w.deleted {
					s.object = nil
				}
			}
		}
		if restarts {
			s.watching, s.pending = false, nil
		}
	}
	e.versions = e.versions[:len(kept)]
	m.old = m.old && !restarts || !restarts
}

// restart restarts the API server, which drops its caches.
func (m *model) restart() {
	m.old = false
	for _, s := range m.streams {
		s.watching, s.pending = false, nil
	}
}

// proceed does the next step of the stream's reflector.
func (m *model) proceed(s *modelStream) {
	if s.rollbackProof == "" && !s.watching {
		proof, err := s.tracker.CheckRollback(m.t.Context(), strconv.Itoa(s.at))
		if err != nil {
			return
		}
		if s.rollbackProof = proof; proof == "" {
			s.watching = true
			for _, w := range s.etcd.history {
				if w.stream == s.number && w.revision() > s.at {
					s.pending = append(s.pending, w)
				}
			}
		}
	}
	if s.rollbackProof == "" {
		return
	}
	s.watching, s.pending = false, nil
	require.NoError(m.t, s.fifo.InterruptedSince(delta.CauseHistoryReversed, s.rollbackProof, s.tracker.GapBegin()))
	if m.old && s.etcd == m.etcds[0] {
		return // The list is not trusted.
	}
	m.list(s, delta.CauseHistoryReversed, s.rollbackProof)
}

func (m *model) list(s *modelStream, cause delta.Cause, detail string) {
	s.tracker.Listing(cause)
	require.NoError(m.t, s.fifo.BeginReplace(cause, detail, strconv.Itoa(s.at)))
	var page []any
	if s.object != nil {
		page = append(page, s.object.Object)
	}
	require.NoError(m.t, s.fifo.ReplacePage(page, strconv.Itoa(s.etcd.now)))
	s.tracker.Shown(page)
	require.NoError(m.t, s.fifo.EndReplace(strconv.Itoa(s.etcd.now)))
	s.tracker.Listed(strconv.Itoa(s.etcd.now))
	s.at, s.rollbackProof, s.watching, s.pending = s.etcd.now, "", true, nil
	s.tracker.Reached(strconv.Itoa(s.at))
}

// commit records some entries of the queue.
func (m *model) commit(most int) {
	if m.queue.Stats().Entries == 0 {
		return
	}
	entries, err := m.queue.Next(m.t.Context(), most, 1<<20, 0)
	require.NoError(m.t, err)
	for i := range entries {
		e := &entries[i]
		m.recordEntry(e.Stream.(*modelStream), e, e.Marker)
		for _, b := range e.Others {
			marker := *e.Marker
			marker.FromRV, marker.FromTime = b.FromRV, b.FromTime
			m.recordEntry(b.Stream.(*modelStream), &deltafifo.Entry{Observed: e.Observed, Marker: &marker}, &marker)
		}
	}
	m.queue.Done(len(entries))
	m.verified = times.Later(m.verified, m.all.Verified(entries[len(entries)-1].Observed))
}

func (m *model) recordEntry(s *modelStream, e *deltafifo.Entry, marker *delta.Marker) {
	if o, ok := e.Delta.Object.(*kube.Object); ok {
		w := m.entries[o]
		w.recorded, w.observed = true, e.Observed
		if s.living = w; w.deleted {
			s.living = nil
		}
		if e.Source.Listed() {
			s.listed = w
		}
		if e.Source == delta.SourceWatch {
			s.rows, w.shown = append(s.rows, w), true
		}
	}
	if e.Position != "" && e.Delta.Type != delta.Deleted {
		s.position, _ = strconv.Atoi(e.Position)
		s.positioned = e.Observed
	}
	if marker != nil && marker.Kind == delta.Replaced {
		if s.living, s.listed = s.listed, nil; s.living != nil {
			s.living.shown = true
		}
	}
	switch {
	case marker == nil:
	case marker.Kind == delta.Interrupted && s.openGap() == nil:
		g := modelGap{from: s.position, since: s.positioned, beginHistory: s.historyOnRecord(), open: true, cause: marker.Cause}
		if from, _ := strconv.Atoi(marker.FromRV); from != 0 && from < s.position {
			g.from = from
		}
		if !marker.FromTime.IsZero() {
			g.since = marker.FromTime
		}
		s.gaps = append(s.gaps, g)
	case marker.Kind == delta.Replaced && s.openGap() != nil && marker.Cause.Ends(s.openGap().cause):
		g := s.openGap()
		g.open, g.to, g.endHistory = false, e.Observed, s.etcd.historyNumber
	}
}

// finish runs the model until nothing changes any more.
func (m *model) finish() {
	m.restart()
	for range 6 {
		for _, s := range m.streams {
			m.proceed(s)
			m.deliver(s, 1000)
		}
		time.Sleep(probeEvery)
		_ = m.all.Probe(m.t.Context())
	}
	for _, s := range m.streams {
		m.proceed(s)
		m.deliver(s, 1000)
	}
	for m.queue.Stats().Entries > 0 {
		m.commit(100_000)
	}
}

// fault describes a version that is neither on record nor in a gap, or a needless gap.
func (m *model) fault() string {
	excused, blind := m.etcds[0].unknowable(m.killed)
	if blind {
		return ""
	}
	for _, s := range m.streams {
		if s.openGap() != nil {
			return fmt.Sprintf("stream %d: its gap stays open", s.number)
		}
		if needless := s.etcd == m.etcds[1] || !m.servedLost; needless && len(s.gaps) > 0 {
			return fmt.Sprintf("stream %d: a needless gap: %+v", s.number, s.gaps)
		}
		for _, w := range s.etcd.all {
			if w.stream != s.number || w.recorded || excused[w] || s.covers(w) {
				continue
			}
			return fmt.Sprintf("stream %d: revision %d of history %d, written at %s, is missing; gaps: %+v", s.number, w.revision(), w.historyNumber, w.at, s.gaps)
		}
	}
	return ""
}

// unknowable returns the versions that no recorder can know of. A rollback has lost them, and nothing that it has
// lost is on record. A list that is on record in part does not count: its gap is open.
//
// blind reports whether streams were ahead of the snapshot all the same, by deletions or by a list. Once the new
// history has passed them, nothing shows the rollback. A successor does not know when a version was written. So it
// can mistake another version of the same object and revision for that one.
func (e *modelEtcd) unknowable(killed bool) (excused map[*modelVersion]bool, blind bool) {
	excused = map[*modelVersion]bool{}
	for i, lost := range e.lostVersions {
		known := slices.ContainsFunc(lost, func(w *modelVersion) bool { return w.shown && !w.deleted && (!killed || !e.repeated(w)) })
		for _, w := range lost {
			excused[w] = !known
		}
		blind = blind || !known && e.ahead[i]
	}
	return excused, blind
}

// repeated reports whether another history has given a version's revision to the same object.
func (e *modelEtcd) repeated(w *modelVersion) bool {
	return slices.ContainsFunc(e.all, func(o *modelVersion) bool {
		return o != w && o.stream == w.stream && o.UID == w.UID && o.revision() == w.revision()
	})
}

func (s *modelStream) covers(w *modelVersion) bool {
	return slices.ContainsFunc(s.gaps, func(g modelGap) bool {
		if g.endHistory < w.historyNumber || w.at.After(g.to) {
			return false
		}
		return !w.at.Before(g.since) || (w.historyNumber < g.endHistory || w.historyNumber == g.beginHistory) && w.revision() > g.from
	})
}

type modelStep struct {
	What   int
	Stream int
	Many   int
	Pause  time.Duration
}

func (m *model) step(step modelStep) {
	s := m.streams[step.Stream]
	switch {
	case step.What < 8:
		m.write(s, step.What == 0)
	case step.What < 14:
		m.deliver(s, step.Many)
	case step.What < 17:
		m.commit(step.Many)
	case step.What < 18:
		m.etcds[0].saved = len(m.etcds[0].history)
	case step.What < 20:
		m.rollBack(step.Many > 5)
	case step.What < 21:
		m.restart()
	case step.What < 24: // overtake the old history
		for range 4 * step.Many {
			m.write(m.streams[step.Stream%4], false)
		}
		m.deliver(m.streams[step.Stream%4], step.Many)
	case step.What < 25:
		m.killed = true
		m.begin(m.verified)
	}
	time.Sleep(step.Pause)
	if time.Since(m.probed) >= probeEvery {
		m.probed = time.Now()
		_ = m.all.Probe(m.t.Context())
	}
	for _, s := range m.streams {
		m.proceed(s)
	}
}

func TestEachVersionThatARollbackLosesLiesInAGap(t *testing.T) {
	steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) modelStep {
		return modelStep{
			What: rapid.IntRange(0, 24).Draw(r, "what"), Stream: rapid.IntRange(0, 4).Draw(r, "stream"), Many: rapid.IntRange(1, 10).Draw(r, "many"),
			Pause: time.Duration(rapid.IntRange(1, 30).Draw(r, "pause")) * 100 * time.Millisecond,
		}
	}), 20, 120)
	if flag.Lookup("rapid.seed").Value.String() == "0" {
		require.NoError(t, flag.Set("rapid.seed", "1")) // The same steps each time; -rapid.seed and -rapid.checks search further.
	}
	rapid.Check(t, func(r *rapid.T) {
		taken, fault := steps.Draw(r, "steps"), ""
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t)
			for _, s := range taken {
				m.step(s)
			}
			m.finish()
			fault = m.fault()
		})
		if fault != "" {
			r.Fatal(fault)
		}
	})
}
