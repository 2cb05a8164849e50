package reports

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/status"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// quietAfter is the age of the newest commit after which Status warns that the recorder seems cut off. API servers send each stream a
// bookmark about once a minute, and the recorder commits each.
const quietAfter = 3 * time.Minute

// Status prints the status of a record. If wide is set, it prints all streams.
func Status(out io.Writer, found status.Record, wide bool) error {
	if len(found.Outdated) > 0 {
		fmt.Fprintf(out, "Warning: the embedded PostgreSQL runs from files that were replaced on disk (%s). A recorder that runs restarts it\n"+
			"when no other program is connected.\n\n", strings.Join(found.Outdated, ", "))
	}
	if found.OutdatedError != "" {
		fmt.Fprintf(out, "Warning: cannot check whether the files of the embedded PostgreSQL were replaced on disk: %s\n\n", found.OutdatedError)
	}
	if len(found.Clusters) == 0 {
		fmt.Fprintln(out, `nothing is recorded yet; "recorder run" records`)
		return nil
	}
	for i, c := range found.Clusters {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := printCluster(out, c, wide); err != nil {
			return err
		}
	}
	return nil
}

func printCluster(out io.Writer, c status.Cluster, wide bool) error {
	head := newTable(out)
	head.row("Recording:", c.Recording.String())
	head.row("Cluster:", fmt.Sprintf("%s, uid %s", c.Name, c.UID))
	head.row("Recorder:", fmt.Sprintf("%s, version %s, epoch %d since %s", c.Recorder, c.Version, c.Epoch, status.When(c.StartedAt)))
	if len(c.Standbys) > 0 {
		head.row("Standby:", strings.Join(c.Standbys, ", "))
	}
	head.row("Recorded:", fmt.Sprintf("%d deltas, last commit %s", c.Seq, status.When(status.LastCommit(c.ClusterStatus))))
	head.row("Streams:", streams(c))
	if c.Gaps.Missed > 0 {
		head.row("Gaps:", fmt.Sprintf("versions may be missing in %d gaps, the last one until %s; replay coverage lists them", c.Gaps.Missed, status.When(c.Gaps.Last)))
	}
	if c.Spool.Bytes > 0 {
		head.row("Spool:", fmt.Sprintf("%d bytes on disk that wait for the database", c.Spool.Bytes))
	}
	if c.Spool.Error != "" {
		head.row("Spool:", fmt.Sprintf("cannot be read; run this as the recorder's user: %s", c.Spool.Error))
	}
	for _, folder := range c.Spool.Aside {
		head.row("Warning:", fmt.Sprintf("a spool was set aside in %s: look at it, then remove it", folder))
	}
	if c.Recording.Now && c.Recording.SinceCommit() > quietAfter {
		head.row("Warning:", fmt.Sprintf("nothing was committed for %s: the recorder cannot reach the cluster or the database", c.Recording.LastCommitAge()))
	}
	if err := head.flush(); err != nil {
		return err
	}
	if wide {
		return printAllStreams(out, c.Streams)
	}
	return printAilingStreams(out, c.Streams)
}

// streams returns the summary of the streams. If no recorder records, it adds the time of their states.
func streams(c status.Cluster) string {
	text := summary(c.Streams)
	if !c.Recording.Now {
		text = fmt.Sprintf("as of %s: %s", status.When(c.Recording.Since), text)
	}
	return text
}

// summary counts the streams by state, their open gaps, and their living objects.
func summary(streams []postgres.StreamStatus) string {
	states := map[delta.State]int{}
	gaps, living := 0, int64(0)
	for _, s := range streams {
		states[s.State]++
		living += s.Living
		if s.Gap != nil {
			gaps++
		}
	}
	text := fmt.Sprintf("%d live", states[delta.StateLive])
	for _, state := range []delta.State{delta.StateListing, delta.StateInterrupted} {
		if states[state] > 0 {
			text += fmt.Sprintf(", %d %s", states[state], state)
		}
	}
	if gaps > 0 {
		text += fmt.Sprintf("; %d open gaps", gaps)
	}
	return text + fmt.Sprintf("; %d living objects", living)
}

// printAilingStreams prints the streams that do not follow the cluster. It omits the server's messages, because each fills several lines.
func printAilingStreams(out io.Writer, streams []postgres.StreamStatus) error {
	t := newTable(out)
	for _, s := range streams {
		if s.State == delta.StateLive && s.Gap == nil {
			continue
		}
		t.titled("RESOURCE", "STATE", "SINCE", "LIVING", "GAP")
		t.row(resourceName(s), string(s.State), status.Age(s.StateSince), strconv.FormatInt(s.Living, 10), orDash(cause(s)))
	}
	if t.hasHead {
		t.row("")
		t.row("--output wide says why.")
	}
	return t.flush()
}

func printAllStreams(out io.Writer, streams []postgres.StreamStatus) error {
	t := newTable(out)
	for _, s := range streams {
		t.titled("RESOURCE", "VERSION", "STATE", "SINCE", "LIVING", "LAST SEQ", "POSITION", "MOVED", "WHY")
		t.row(resourceName(s), s.Version, string(s.State), status.Age(s.StateSince), strconv.FormatInt(s.Living, 10), strconv.FormatInt(s.LastSeq, 10),
			orDash(s.Position), status.Age(s.PositionedAt), why(s))
	}
	return t.flush()
}

func resourceName(s postgres.StreamStatus) string {
	name := s.Resource
	if s.Group != "" {
		name += "." + s.Group
	}
	if s.Scope != "" {
		name += " in " + s.Scope
	}
	return name
}

func cause(s postgres.StreamStatus) string {
	if s.Gap == nil {
		return ""
	}
	return string(s.Gap.Cause)
}

// why returns the reason for the state: the open gap with its detail, or the detail of the stream.
func why(s postgres.StreamStatus) string {
	if s.Gap == nil {
		return s.Detail
	}
	text := string(s.Gap.Cause)
	if !s.Gap.Since.IsZero() {
		text += ", nothing seen for " + status.Age(s.Gap.Since)
	}
	if s.Gap.Detail != "" {
		text += ": " + s.Gap.Detail
	}
	return text
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
