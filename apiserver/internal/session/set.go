package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kuberewind/kuberewind/apiserver/internal/clock"
	"github.com/kuberewind/kuberewind/history"
)

// A Change is the body of a PUT. A nil field does not change.
type Change struct {
	Cluster *string  `json:"cluster,omitempty"` // the UID; optional if one cluster is served
	At      *string  `json:"at,omitempty"`      // an instant as history.ParseInstant reads it
	Playing *bool    `json:"playing,omitempty"`
	Speed   *float64 `json:"speed,omitempty"`
}

// A place is a resolved instant of the record.
type place struct {
	seq   int64
	ends  int64 // the last commit after the delta that ended a gap by then; 0 if none did
	time  time.Time
	notes []string
}

// find resolves an instant. An instant after the end of the record resolves to the end.
func find(ctx context.Context, past Cluster, text string) (*place, error) {
	at, err := history.ParseInstant(text)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(`"at": %v`, err))
	}
	point, err := past.Record.Resolve(ctx, at, history.Scope{})
	var missing *history.MissingDayError
	switch {
	case errors.Is(err, history.ErrBeforeRecord), errors.Is(err, history.ErrEmpty), errors.As(err, &missing):
		return nil, apierrors.NewBadRequest(fmt.Sprintf(`"at": %v`, err))
	case err != nil:
		return nil, unavailable(err)
	}
	extent, err := past.Record.Extent(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	p := &place{seq: point.Seq, time: point.Time}
	if p.time.After(extent.LastAt) {
		p.time = extent.LastAt
	}
	if p.ends, err = past.Timeline.EndedBy(ctx, p.seq, p.time); err != nil {
		return nil, unavailable(err)
	}
	for _, n := range point.Notes {
		p.notes = append(p.notes, n.Text)
	}
	if point.Until > point.Seq {
		p.notes = append(p.notes, fmt.Sprintf("the session is at seq:%d, the last delta before a time that was caught up on", point.Seq))
	}
	return p, nil
}

func unavailable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the record cannot be read now: %v", err))
}

// set changes the clock, and moves the root to a place if to is not nil.
func (s *session) set(ctx context.Context, change *Change, to *place) error {
	if err := s.move(ctx); err != nil {
		return err
	}
	defer s.moved()
	if err := s.setClock(time.Now(), change, to); err != nil {
		return err
	}
	if to != nil {
		s.steps.jump(to)
	}
	s.wake()
	return nil
}

// setClock applies the whole change, or nothing.
func (s *session) setClock(now time.Time, change *Change, to *place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	reached := s.reached
	if to != nil {
		reached = to.time
	}
	c, err := change.applied(s.clock, now, to, reached)
	if err != nil {
		return err
	}
	s.clock, s.reached = c, reached
	if to != nil {
		s.atEnd, s.problem = false, ""
	}
	return nil
}

// applied returns the clock after the Change. A paused clock shows the time up to which all deltas were delivered.
func (change *Change) applied(c clock.Clock, now time.Time, to *place, reached time.Time) (_ clock.Clock, err error) {
	if to != nil {
		c = c.Seek(now, to.time)
	}
	if change.Speed != nil {
		if c, err = c.WithSpeed(now, *change.Speed); err != nil {
			return c, apierrors.NewBadRequest(`"speed": ` + err.Error())
		}
	}
	switch {
	case change.Playing == nil:
	case *change.Playing:
		c = c.Play(now)
	case c.Playing():
		c = c.Pause(now).Seek(now, reached)
	}
	return c, nil
}
