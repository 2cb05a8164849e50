package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// quietAfter is the age of the newest commit from which a recorder seems cut off. API servers send each stream a bookmark about
// once a minute, and each is a commit.
const quietAfter = 3 * time.Minute

func (p *program) statusCommand() *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what is recorded, how far, and what is wrong",
		Long: "Show, from the database, whether a recorder records now, what is recorded, how far, and which streams do not follow the\n" +
			"cluster. Show also the deltas in the spool, if it is on this machine. The recorder need not be running.",
		Example: `  recorder status                # the streams that do not follow the cluster
  recorder status --output wide  # all streams`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			found, err := p.readStatus(cmd)
			if err != nil {
				return err
			}
			return p.print(output, found, func(wide bool) error { return p.printStatus(found, wide) })
		},
	}
	output.add(cmd)
	concerns(cmd, statusSettings...)
	return cmd
}

// recordStatus is what the database says, and the disk.
type recordStatus struct {
	// Outdated are the files of the embedded PostgreSQL that were replaced on disk since it was started.
	Outdated      []string        `json:"outdated,omitempty"`
	OutdatedError string          `json:"outdatedError,omitempty"` // why they cannot be looked at
	Clusters      []clusterStatus `json:"clusters"`
}

type clusterStatus struct {
	postgres.ClusterStatus
	Recording recordingStatus `json:"recording"`
	Standbys  []string        `json:"standbys,omitempty"`
	Spool     spoolStatus     `json:"spool"`
}

type spoolStatus struct {
	spool.Contents
	Error string `json:"error,omitempty"` // why it cannot be seen
}

func (p *program) readStatus(cmd *cobra.Command) (found recordStatus, err error) {
	err = p.withRecord(cmd, func(ctx context.Context, cfg config.Config, db *database.Database, conn *pgx.Conn) error {
		recorded, err := postgres.ReadStatus(ctx, conn)
		if err != nil {
			return err
		}
		if found.Outdated, err = db.Outdated(); err != nil {
			found.OutdatedError = err.Error()
		}
		found.Clusters = make([]clusterStatus, 0, len(recorded.Clusters))
		for _, recorded := range recorded.Clusters {
			c := clusterStatus{ClusterStatus: recorded, Spool: lookAtSpool(filepath.Join(cfg.Spool(), recorded.UID))}
			if c.Recording, err = readRecording(ctx, db, conn, recorded); err != nil {
				return err
			}
			if c.Standbys, err = election.Standbys(ctx, conn, c.UID); err != nil {
				return err
			}
			found.Clusters = append(found.Clusters, c)
		}
		return nil
	})
	return found, err
}

// lookAtSpool says what lies in a folder, or why that cannot be seen. The folder may be another user's, and the record says
// enough without it.
func lookAtSpool(dir string) spoolStatus {
	contents, err := spool.Look(dir)
	if err != nil {
		return spoolStatus{Error: err.Error()}
	}
	return spoolStatus{Contents: contents}
}

func (p *program) printStatus(found recordStatus, wide bool) error {
	if len(found.Outdated) > 0 {
		fmt.Fprintf(p.out, "Warning: the embedded PostgreSQL runs from files that were replaced on disk (%s). A recorder that runs restarts it\n"+
			"when no other program is connected.\n\n", strings.Join(found.Outdated, ", "))
	}
	if found.OutdatedError != "" {
		fmt.Fprintf(p.out, "Warning: whether the files of the embedded PostgreSQL were replaced on disk cannot be seen: %s\n\n", found.OutdatedError)
	}
	if len(found.Clusters) == 0 {
		fmt.Fprintln(p.out, `nothing is recorded yet; "recorder run" records`)
		return nil
	}
	for i, c := range found.Clusters {
		if i > 0 {
			fmt.Fprintln(p.out)
		}
		if err := p.printCluster(c, wide); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) printCluster(c clusterStatus, wide bool) error {
	head := newTable(p.out)
	head.row("Recording:", c.Recording.String())
	head.row("Cluster:", fmt.Sprintf("%s, uid %s", c.Name, c.UID))
	head.row("Recorder:", fmt.Sprintf("%s, version %s, epoch %d since %s", c.Recorder, c.Version, c.Epoch, when(c.StartedAt)))
	if len(c.Standbys) > 0 {
		head.row("Standby:", strings.Join(c.Standbys, ", "))
	}
	head.row("Recorded:", fmt.Sprintf("%d deltas, last commit %s", c.Seq, when(lastCommit(c.ClusterStatus))))
	head.row("Streams:", c.streams())
	if c.Gaps.Missed > 0 {
		head.row("Gaps:", fmt.Sprintf("in %d stretches versions may have been missed, in the last up to %s; replay coverage shows them", c.Gaps.Missed, when(c.Gaps.Last)))
	}
	if c.Spool.Bytes > 0 {
		head.row("Spool:", fmt.Sprintf("%d bytes on disk that wait for the database", c.Spool.Bytes))
	}
	if c.Spool.Error != "" {
		head.row("Spool:", fmt.Sprintf("cannot be seen, ask as the user that the recorder runs as: %s", c.Spool.Error))
	}
	for _, folder := range c.Spool.Aside {
		head.row("Warning:", fmt.Sprintf("what was spooled is set aside in %s: look at it, then remove it", folder))
	}
	if c.Recording.Now && c.Recording.sinceCommit() > quietAfter {
		head.row("Warning:", fmt.Sprintf("nothing was committed for %s: the recorder cannot reach the cluster or the database", c.Recording.lastCommitAge()))
	}
	if err := head.flush(); err != nil {
		return err
	}
	if wide {
		return p.printAllStreams(c.Streams)
	}
	return p.printAilingStreams(c.Streams)
}

// streams counts them. If nobody records, it says of which time their states are.
func (c *clusterStatus) streams() string {
	text := summary(c.Streams)
	if !c.Recording.Now {
		text = fmt.Sprintf("as of %s: %s", when(c.Recording.Since), text)
	}
	return text
}

// summary counts the streams by state, and what lives in them.
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

// printAilingStreams shows which streams do not follow the cluster. The server's message about one fills lines.
func (p *program) printAilingStreams(streams []postgres.StreamStatus) error {
	t := newTable(p.out)
	for _, s := range streams {
		if s.State == delta.StateLive && s.Gap == nil {
			continue
		}
		t.titled("RESOURCE", "STATE", "SINCE", "LIVING", "GAP")
		t.row(resourceName(s), string(s.State), age(s.StateSince), strconv.FormatInt(s.Living, 10), orDash(cause(s)))
	}
	if t.hasHead {
		t.row("")
		t.row("--output wide says why.")
	}
	return t.flush()
}

func (p *program) printAllStreams(streams []postgres.StreamStatus) error {
	t := newTable(p.out)
	for _, s := range streams {
		t.titled("RESOURCE", "VERSION", "STATE", "SINCE", "LIVING", "LAST SEQ", "POSITION", "MOVED", "WHY")
		t.row(resourceName(s), s.Version, string(s.State), age(s.StateSince), strconv.FormatInt(s.Living, 10), strconv.FormatInt(s.LastSeq, 10),
			orDash(s.Position), age(s.PositionedAt), why(s))
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

// why is the reason for the state, by the server or the recorder, with the open gap.
func why(s postgres.StreamStatus) string {
	if s.Gap == nil {
		return s.Detail
	}
	text := string(s.Gap.Cause)
	if !s.Gap.Since.IsZero() {
		text += ", nothing seen for " + age(s.Gap.Since)
	}
	if s.Gap.Detail != "" {
		text += ": " + s.Gap.Detail
	}
	return text
}

// when is a time with its age, of which the second is for people.
func when(t time.Time) string {
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format(time.RFC3339), age(t))
}

func age(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(time.Since(t), 0))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
