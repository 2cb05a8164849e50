package auditlog

import (
	"bufio"
	"cmp"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"github.com/kuberewind/kuberewind/internal/serve"
	"github.com/kuberewind/kuberewind/internal/serve/jsonlines"
)

// Annotations of an event.
const (
	InstantAnnotation = "kuberewind.io/instant" // what was read; of a watch of a session, where it began
	SessionAnnotation = "kuberewind.io/session" // whose clock said so
)

// seqHeader names the seq of an answer.
const seqHeader = "Kuberewind-Seq"

// resolver reads URLs as an API server does.
var resolver = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// root is the part of a path that names an API root: whose it is, and its instant or session.
var root = regexp.MustCompile(`^/clusters/[^/]+/(?:shifted/)?(at|session)/([^/]+)`)

// Log is an open audit log.
type Log struct{ file *jsonlines.File }

// Open opens a file to append to. A new file is its owner's alone.
func Open(name string) (*Log, error) {
	file, err := jsonlines.Open("audit log", name)
	if err != nil {
		return nil, err
	}
	return &Log{file: file}, nil
}

// Close writes what is left, and closes the file.
func (l *Log) Close() error { return l.file.Close() }

// Watch writes down what next was asked, and with which code it answered.
func (l *Log) Watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := l.file.Ready(); err != nil {
			serve.WriteStatus(w, &metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: err.Error(),
			})
			return
		}
		event := newEvent(r)
		w.Header().Set(auditv1.HeaderAuditID, string(event.AuditID))
		answer := &answer{ResponseWriter: w}
		event.Stage = auditv1.StagePanic // until next has returned
		defer func() {
			event.ResponseStatus = answer.status()
			answered(event, w.Header())
			event.StageTimestamp = metav1.NowMicro()
			_ = l.file.Append(event) // A line that could not be written stays, and refuses the next request.
		}()
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(answer), r)
		event.Stage = auditv1.StageResponseComplete
	})
}

// answered notes where a session was when it answered.
func answered(e *auditv1.Event, header http.Header) {
	if seq := header.Get(seqHeader); seq != "" && e.Annotations[SessionAnnotation] != "" {
		e.Annotations[InstantAnnotation] = "seq:" + seq
	}
}

func newEvent(r *http.Request) *auditv1.Event {
	e := &auditv1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Event"},
		Level:    auditv1.LevelMetadata, AuditID: types.UID(uuid.NewString()),
		RequestURI: r.URL.RequestURI(), UserAgent: r.UserAgent(), RequestReceivedTimestamp: metav1.NewMicroTime(time.Now()),
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		e.SourceIPs = []string{host}
	}
	if caller, ok := request.UserFrom(r.Context()); ok {
		e.User = authenticationv1.UserInfo{Username: caller.GetName(), UID: caller.GetUID(), Groups: caller.GetGroups()}
	}
	describe(e, r)
	return e
}

// describe says what was asked, and of which instant.
func describe(e *auditv1.Event, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, timeline) {
		e.Verb = strings.ToLower(r.Method)
		describeQuery(e, r.URL.Query())
		return
	}
	asked := r.Clone(r.Context())
	if found := root.FindStringSubmatch(r.URL.Path); found != nil {
		asked.URL.Path = r.URL.Path[len(found[0]):]
		name := map[string]string{"at": InstantAnnotation, "session": SessionAnnotation}[found[1]]
		e.Annotations = map[string]string{name: found[2]}
	}
	info, _ := resolver.NewRequestInfo(asked) // Beside an error stands what could be read.
	e.Verb = info.Verb
	if info.IsResourceRequest {
		e.ObjectRef = &auditv1.ObjectReference{
			APIGroup: info.APIGroup, APIVersion: info.APIVersion, Resource: info.Resource, Subresource: info.Subresource,
			Namespace: info.Namespace, Name: info.Name,
		}
	}
}

// timeline begins the paths of what the page asks. Its query says of which instant and object.
const timeline = "/timeline/"

// describeQuery leaves out parameters that are there twice: nobody knows which one was meant.
func describeQuery(e *auditv1.Event, query url.Values) {
	one := func(name string) string {
		if len(query[name]) == 1 {
			return query.Get(name)
		}
		return ""
	}
	if instant := cmp.Or(one("at"), between(one("a"), one("b")), between(moment(one("from")), moment(one("to")))); instant != "" {
		e.Annotations = map[string]string{InstantAnnotation: instant}
	}
	resource := schema.ParseGroupResource(one("resource"))
	object := auditv1.ObjectReference{
		APIGroup: resource.Group, Resource: resource.Resource, Namespace: one("namespace"), Name: one("name"), UID: types.UID(one("uid")),
	}
	if object != (auditv1.ObjectReference{}) {
		e.ObjectRef = &object
	}
}

// between is all from one instant to another, "" of none.
func between(from, to string) string {
	if from == "" && to == "" {
		return ""
	}
	return from + ".." + to
}

// moment is the time of an end of a window, which is in milliseconds. A value that is no number was refused.
func moment(text string) string {
	milli, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return text
	}
	return time.UnixMilli(milli).UTC().Format(time.RFC3339Nano)
}

// answer remembers the code of an answer.
type answer struct {
	http.ResponseWriter
	code int // 0: nothing was answered yet
}

// Unwrap is for http.ResponseController, and for responsewriter.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(code int) {
	if a.code == 0 && code >= http.StatusOK { // else more follows
		a.code = code
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(body []byte) (int, error) {
	if a.code == 0 {
		a.code = http.StatusOK
	}
	return a.ResponseWriter.Write(body)
}

// Hijack is what a WebSocket does.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.code = http.StatusSwitchingProtocols
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// status is what was answered. A handler that writes nothing answers with 200.
func (a *answer) status() *metav1.Status {
	status := &metav1.Status{Status: metav1.StatusSuccess, Code: int32(cmp.Or(a.code, http.StatusOK))}
	if a.code >= http.StatusBadRequest {
		status.Status = metav1.StatusFailure
	}
	return status
}
