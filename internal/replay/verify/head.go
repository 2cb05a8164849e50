package verify

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/output"
)

// exitPruned is the exit code for a head that cannot be checked, because its commit was pruned.
const exitPruned = 3

// headReport is the result of verify --head. Its JSON form is public: the help of verify documents it.
type headReport struct {
	Cluster   string              `json:"cluster"`
	Outcome   history.HeadOutcome `json:"outcome"`
	Head      string              `json:"head"`
	Found     string              `json:"found,omitempty"` // hexadecimal
	Newest    int64               `json:"newest"`
	Day       string              `json:"day,omitempty"`
	FromPrune bool                `json:"fromPrune"`
	Text      string              `json:"text"`
}

func (v *verifyCommand) compareHead(ctx context.Context) error {
	kept, err := history.ParseHead(v.head)
	if err != nil {
		return fmt.Errorf("--head: %w", err)
	}
	rec, err := v.env.Open(ctx)
	if err != nil {
		return err
	}
	c, err := rec.Commits().CompareHead(ctx, kept)
	if err = errors.Join(err, rec.Close()); err != nil {
		return err
	}
	report := newHeadReport(rec.Cluster().Name, kept, c)
	if v.output == output.JSON {
		err = output.WriteJSON(v.env.IOStreams.Out, report, true)
	} else {
		_, err = fmt.Fprintln(v.env.IOStreams.Out, report.Text)
	}
	switch {
	case err != nil:
		return err
	case c.Outcome == history.HeadPruned:
		return &env.ExitError{Code: exitPruned}
	case c.Outcome == history.HeadDifferent:
		return &env.ExitError{Code: 1}
	}
	return nil
}

func newHeadReport(cluster string, kept history.Head, c history.HeadComparison) *headReport {
	r := &headReport{
		Cluster: cluster, Outcome: c.Outcome, Head: kept.String(), Found: hex.EncodeToString(c.Found), Newest: c.Newest, FromPrune: c.FromPrune,
	}
	if !c.Day.IsZero() {
		r.Day = c.Day.Format(time.DateOnly)
	}
	r.Text = headText(kept, c)
	return r
}

func headText(kept history.Head, c history.HeadComparison) string {
	day := c.Day.Format(time.DateOnly)
	switch {
	case c.Outcome == history.HeadPruned:
		return fmt.Sprintf("Commit %d cannot be checked: it was pruned with %s.", kept.Batch, day)
	case c.Outcome == history.HeadEqual && c.FromPrune:
		return fmt.Sprintf("Commit %d has this digest, according to the prune of %s. A prune row is not part of the chain.", kept.Batch, day)
	case c.Outcome == history.HeadEqual:
		return fmt.Sprintf("Commit %d has this digest. The newest commit is %d.", kept.Batch, c.Newest)
	case c.FromPrune:
		return fmt.Sprintf("Commit %d has another digest, according to the prune of %s: %x. A prune row is not part of the chain.", kept.Batch, day, c.Found)
	case c.Found != nil:
		return fmt.Sprintf("Commit %d has another digest: %x. The rows that it covers were changed.", kept.Batch, c.Found)
	case kept.Batch > c.Newest:
		return fmt.Sprintf("Commit %d is not on record. The newest commit is %d: later commits were removed, or this is another record.", kept.Batch, c.Newest)
	}
	return fmt.Sprintf("Commit %d is missing, and no prune dropped it.", kept.Batch)
}
