package data

import "time"

// An eventLease is an etcd lease of Events.
type eventLease struct {
	since  time.Duration
	events []*object
}

// A reporter writes Events. As the API server, it lets those of a minute end together.
type reporter struct {
	store    *store
	schedule *schedule
	lease    *eventLease // that new Events get
}

// report makes an Event about an object.
func (r *reporter) report(o *object, reason, message, component, kind string) *object {
	e := r.store.newObject(events, o.values[holeNamespace], o.values[holeName]+"."+r.store.chance.hex(16))
	e.values[holeOwner], e.values[holeOwnerUID], e.values[holeGeneration] = o.values[holeName], o.values[holeUID], o.values[holeRV]
	e.values[holeReason], e.values[holeMessage], e.values[holeComponent], e.values[holePhase] = reason, message, component, kind
	e.values[holeKind], e.values[holeNode], e.values[holeRestarts] = generated[o.kind].Kind, o.values[holeNode], "1"
	r.renew(e)
	r.store.create(e)
	return e
}

// renew gives an Event the etcd lease that is handed out now. When that ends, all its Events end in one revision.
func (r *reporter) renew(e *object) {
	if r.lease == nil || r.schedule.now-r.lease.since > leaseReuse || len(r.lease.events) == leaseMaxCount {
		lease := &eventLease{since: r.schedule.now}
		r.lease = lease
		r.schedule.after(eventTTL+leaseReuse, func() {
			r.store.rv++
			for _, e := range lease.events {
				if e.lease == lease {
					r.store.forget(e)
				}
			}
		})
	}
	if e.lease != r.lease {
		e.lease = r.lease
		r.lease.events = append(r.lease.events, e)
	}
}
