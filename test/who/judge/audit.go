package judge

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Log is what an audit log says of writes.
type Log struct {
	writes   []Write
	bodiless map[Resource]bool // of which the log keeps no bodies
}

// A Resource is what objects are of.
type Resource struct{ Group, Name string }

// A Version of an object.
type Version struct {
	UID string
	RV  uint64
}

// A Write is a request that was answered with an object that it had written, or found unchanged.
type Write struct {
	Version
	User        string
	Manager     string // the truth
	Verb        string
	Subresource string
	Sent        string // the resource version that the client named
	Received    time.Time
	Answered    time.Time
	entries     map[entryKey]entry
}

// head is what is read of every line of the log. Bodies have any form, and are read only of writes.
type head struct {
	Stage, Level, Verb, RequestURI, UserAgent string
	User                                      struct{ Username string }
	ObjectRef                                 struct{ APIGroup, Resource, Subresource, ResourceVersion string }
	ResponseStatus                            struct{ Code int }
	RequestObject, ResponseObject             json.RawMessage
	RequestReceivedTimestamp, StageTimestamp  time.Time
}

// ReadAudit reads a log of audit.k8s.io/v1, an event a line.
func ReadAudit(from io.Reader) (Log, error) {
	log := Log{bodiless: map[Resource]bool{}}
	lines := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return log, nil
		}
		if err == nil {
			err = log.read(line)
		}
		if err != nil {
			return Log{}, fmt.Errorf("read the audit log: line %.200q: %w", line, err)
		}
	}
}

var mutating = map[string]bool{"create": true, "update": true, "patch": true, "delete": true}

func (l *Log) read(line []byte) error {
	var h head
	if err := json.Unmarshal(line, &h); err != nil {
		return err
	}
	if h.Stage != "ResponseComplete" || !mutating[h.Verb] || h.ResponseStatus.Code/100 != 2 {
		return nil
	}
	if h.Level != "RequestResponse" {
		l.bodiless[Resource{h.ObjectRef.APIGroup, h.ObjectRef.Resource}] = true
		return nil
	}
	w, wrote, err := h.write()
	if wrote {
		l.writes = append(l.writes, w)
	}
	return err
}

// write is false for a dry run, and for an answer that is no version of an object: a Status, or a list.
func (h *head) write() (w Write, wrote bool, err error) {
	asked, err := url.Parse(h.RequestURI)
	if err != nil {
		return w, false, err
	}
	var answer struct {
		Metadata struct {
			UID, ResourceVersion string
			ManagedFields        []managedFields
		}
	}
	if err := json.Unmarshal(h.ResponseObject, &answer); err != nil {
		return w, false, err
	}
	query, metadata := asked.Query(), answer.Metadata
	if metadata.UID == "" || metadata.ResourceVersion == "" || query.Has("dryRun") || h.dryRun() {
		return w, false, nil
	}
	w = Write{
		User: h.User.Username, Manager: query.Get("fieldManager"), Verb: h.Verb, Subresource: h.ObjectRef.Subresource, Sent: h.ObjectRef.ResourceVersion,
		Received: h.RequestReceivedTimestamp, Answered: h.StageTimestamp, entries: entriesOf(metadata.ManagedFields),
	}
	if w.Manager == "" {
		w.Manager, _, _ = strings.Cut(h.UserAgent, "/")
	}
	w.UID = metadata.UID
	w.RV, err = strconv.ParseUint(metadata.ResourceVersion, 10, 64)
	return w, err == nil, err
}

// dryRun reports whether the options of a delete ask for one.
func (h *head) dryRun() bool {
	var options struct{ DryRun []string }
	return h.Verb == "delete" && json.Unmarshal(h.RequestObject, &options) == nil && len(options.DryRun) > 0
}
