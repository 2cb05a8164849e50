package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/timeline/activity"
)

// checkActivity is the name of the check of verify --activity.
const checkActivity = "activity"

// An activityReport is the result of verify --activity. Its JSON form is public: the help of verify documents it.
type activityReport struct {
	Cluster  string          `json:"cluster"`
	Holds    bool            `json:"holds"`
	Deltas   int64           `json:"deltas"`
	Blocks   int64           `json:"blocks"`
	Missing  int64           `json:"missing"`
	Other    int64           `json:"other"`
	Findings []verifyFinding `json:"findings"`
}

// compareActivity compares the precomputed counts of the timeline with new counts.
func (v *verifyCommand) compareActivity(ctx context.Context) error {
	rec, err := v.env.Open(ctx)
	if err != nil {
		return err
	}
	report, err := v.activity(ctx, rec)
	if err = errors.Join(err, rec.Close()); err != nil {
		return err
	}
	if v.output == output.JSON {
		err = output.WriteJSON(v.env.IOStreams.Out, report, true)
	} else {
		err = v.printActivity(report)
	}
	if err == nil && !report.Holds {
		err = &env.ExitError{Code: 1}
	}
	return err
}

func (v *verifyCommand) activity(ctx context.Context, rec *env.Record) (*activityReport, error) {
	report := &activityReport{Cluster: rec.Cluster().Name, Findings: []verifyFinding{}}
	progress := v.env.Progress("counting the deltas again")
	defer progress.End()
	done, err := activity.Verify(ctx, rec.Record, activity.VerifyOptions{Progress: progress.Update}, func(found activity.Finding) {
		f := verifyFinding{Check: checkActivity, Seq: found.FirstSeq, Text: found.Text}
		report.Findings = append(report.Findings, f)
		if v.output == output.Text {
			progress.End()
			fmt.Fprintln(v.env.IOStreams.Out, render.Line(f.line()))
		}
	})
	report.Holds = len(report.Findings) == 0
	report.Deltas, report.Blocks, report.Missing, report.Other = done.Deltas, done.Blocks, done.Missing, done.Other
	return report, err
}

func (v *verifyCommand) printActivity(r *activityReport) error {
	out := v.env.IOStreams.Out
	fmt.Fprintf(out, "activity: counted %d deltas in %d blocks again; %d deltas have no precomputed counts\n", r.Deltas, r.Blocks, r.Missing)
	if r.Other > 0 {
		fmt.Fprintf(out, "activity: another version counted %d deltas: these counts are not used, and a recorder will recompute them\n", r.Other)
	}
	verdict := "The counts are right."
	if !r.Holds {
		verdict = "Some counts are wrong. Run DELETE FROM kuberewind.activity, and a recorder will recompute them. The record itself is not affected."
	}
	_, err := fmt.Fprintln(out, verdict)
	return err
}
