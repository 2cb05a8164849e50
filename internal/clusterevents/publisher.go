// Package clusterevents reports the recorder's troubles as Events of the recorded cluster, where operators look when a Pod
// misbehaves. It uses client-go's EventBroadcaster.
//
// # What it guarantees
//
// An Event never holds up recording. One that cannot be written is tried a few times and dropped. If the right is missing, the
// log says so once.
//
// The broadcaster merges alike Events and lets few through: 25 at once, then one in five minutes. An Event is itself a delta of
// the cluster, and must not cause many more.
//
// # Goroutines
//
// Those of client-go's broadcaster, which Close ends.
package clusterevents

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// Component is the source of the Events.
const Component = "kuberewind-recorder"

// Options say what the Events are about, and where they go.
type Options struct {
	Config    *rest.Config
	Namespace string
	// Pod and PodUID are the recorder's own; without them, the Events are about the namespace.
	Pod    string
	PodUID types.UID
	Host   string
	Log    *slog.Logger
}

// Publisher writes Events. That of nil writes none.
type Publisher struct {
	about    *corev1.ObjectReference
	recorder record.EventRecorder
	stop     context.CancelFunc
}

// New sends nothing yet. Its connections are its own, so that no list holds up an Event.
func New(o Options) (*Publisher, error) {
	client, err := typedcorev1.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("client for Events in namespace %s: %w", o.Namespace, err)
	}
	p := &Publisher{about: &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: o.Namespace, Namespace: o.Namespace}}
	if o.Pod != "" {
		p.about.Kind, p.about.Name, p.about.UID = "Pod", o.Pod, o.PodUID
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&sink{namespace: o.Namespace, log: o.Log, events: &typedcorev1.EventSinkImpl{Interface: client.Events("")}})
	p.recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: Component, Host: o.Host})
	p.stop = stop
	return p, nil
}

// Normal tells what is as it should be.
func (p *Publisher) Normal(reason, message string) { p.tell(corev1.EventTypeNormal, reason, message) }

// Warning reports something that an operator should look at.
func (p *Publisher) Warning(reason, message string) { p.tell(corev1.EventTypeWarning, reason, message) }

// maxMessage is what an API server takes, in bytes.
const maxMessage = 1024

func (p *Publisher) tell(kind, reason, message string) {
	if p == nil {
		return
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-len("…")], "") + "…"
	}
	p.recorder.Event(p.about, kind, reason, message)
}

// Close drops what has not been written yet.
func (p *Publisher) Close() {
	if p != nil {
		p.stop()
	}
}

// sink says once in the log that Events are refused.
type sink struct {
	namespace string
	log       *slog.Logger
	events    record.EventSink
	once      sync.Once
}

// noted says it once where Events are not let in. client-go tries again after a passing failure, such as a busy server, and
// after a patch of an Event that has expired.
func (s *sink) noted(event *corev1.Event, err error) (*corev1.Event, error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) {
		s.refused(err)
	}
	return event, err
}

func (s *sink) refused(err error) {
	s.once.Do(func() {
		s.log.Warn("Events about the recorder are refused; this is not said again", "namespace", s.namespace, "error", err,
			"advice", `"recorder check" says what to grant`)
	})
}

// Create implements record.EventSink.
func (s *sink) Create(event *corev1.Event) (*corev1.Event, error) {
	created, err := s.noted(s.events.Create(event))
	if apierrors.IsNotFound(err) {
		s.refused(err) // There is no such namespace.
	}
	return created, err
}

// Update implements record.EventSink.
func (s *sink) Update(event *corev1.Event) (*corev1.Event, error) {
	return s.noted(s.events.Update(event))
}

// Patch implements record.EventSink.
func (s *sink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.noted(s.events.Patch(event, data))
}
