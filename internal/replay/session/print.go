package session

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/terminal"
)

// print prints one session.
func (c *command) print(cluster string, s *apiserver.Session) error {
	if c.output == output.JSON {
		return output.WriteJSON(c.env.IOStreams.Out, s, true)
	}
	for _, note := range s.Notes {
		c.env.Note(note)
	}
	if s.Problem != "" {
		c.env.Note("the clock stands still, because reading the record failed: " + s.Problem)
	}
	if c.end {
		_, err := fmt.Fprintf(c.env.IOStreams.Out, "session %s has ended\n", s.Name)
		return err
	}
	return c.table(cluster, []apiserver.Session{*s})
}

func (c *command) printList(cluster string, list apiserver.SessionList) error {
	if c.output == output.JSON {
		return output.WriteJSON(c.env.IOStreams.Out, list, true)
	}
	if len(list.Sessions) == 0 {
		c.env.Note(fmt.Sprintf("there are no sessions; make one with %q", c.env.Command+" session NAME --at INSTANT"))
		return nil
	}
	return c.table(cluster, list.Sessions)
}

// table prints a row for each session. A row of another cluster's session names that cluster.
func (c *command) table(cluster string, sessions []apiserver.Session) error {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tTIME\tSEQ\tCLOCK\tUSE")
	for i := range sessions {
		s := &sessions[i]
		name := s.Name
		if s.Cluster != cluster {
			name += " (cluster " + s.Cluster + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n",
			render.Line(name), s.Time.In(c.env.Zone()).Format(output.StampForm), s.Seq, clockOf(s), useOf(s, c.env.Now()))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for line := range strings.Lines(table.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	_, err := io.WriteString(c.env.IOStreams.Out, terminal.FoldTables(b.String(), c.env.Width()))
	return err
}

// clockOf returns the state of a clock.
func clockOf(s *apiserver.Session) string {
	switch {
	case s.Problem != "":
		return "stuck"
	case !s.Playing:
		return "paused"
	case s.AtEnd:
		return "at the end"
	}
	return fmt.Sprintf("plays %vx", s.Speed)
}

// useOf returns the number of watches, or when an unused session ends.
func useOf(s *apiserver.Session, now time.Time) string {
	switch {
	case s.Watches == 1:
		return "1 watch"
	case s.Watches > 1:
		return fmt.Sprintf("%d watches", s.Watches)
	case s.Expires.IsZero():
		return "in use"
	}
	return fmt.Sprintf("ends in %.0fm", max(s.Expires.Sub(now), 0).Minutes())
}
