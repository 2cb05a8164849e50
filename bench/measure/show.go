package measure

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// A grid is a table before it has a form: its first row are headings, its first column are names.
type grid [][]string

func (g grid) text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range g {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

func (g grid) markdown(w io.Writer) error {
	for i, row := range g {
		escaped := make([]string, len(row))
		for c, cell := range row {
			escaped[c] = strings.ReplaceAll(cell, "|", `\|`)
		}
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(escaped, " | ")); err != nil {
			return err
		}
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	return nil
}

// values is the table of medians, with the smallest and the largest run behind each.
func (r *Result) values() grid {
	head := []string{"median (min – max)"}
	for _, q := range r.Quantities {
		head = append(head, q.Name+", "+q.Unit)
	}
	g := grid{head}
	ways := r.Ways
	if r.Again != nil {
		ways = append(slices.Clone(ways), r.Again)
	}
	for _, m := range ways {
		row := []string{m.Name}
		for _, q := range r.Quantities {
			cell := "–"
			if all := m.Values[q.Name]; len(all) > 0 {
				cell = fmt.Sprintf("%s (%s – %s)", Number(Median(all)), Number(slices.Min(all)), Number(slices.Max(all)))
			}
			row = append(row, cell)
		}
		g = append(g, row)
	}
	return g
}

func (r *Result) judgements() grid {
	g := grid{{"measure", "", "value (of single rounds)", "noise", "must reach", "aim", "verdict"}}
	for _, j := range r.Judged {
		noise := "–"
		switch {
		case r.Again == nil && (!j.Unpaired || !j.Bound()): // Looks have a floor without being run again.
		case j.Unit != "":
			noise = j.value(j.Noise)
		default:
			noise = fmt.Sprintf("%.1f %%", 100*j.Noise)
		}
		g = append(g, []string{j.Number, j.What, fmt.Sprintf("%s (%s)", j.value(j.Value), j.singles()), noise, j.bound(), j.aim(), string(j.Verdict)})
	}
	return g
}

// singles spells the range of single rounds.
func (j *Judgement) singles() string {
	if j.Unpaired {
		return "–"
	}
	return j.value(j.Low) + " – " + j.value(j.High)
}

// bound spells what has to be reached.
func (j *Judgement) bound() string {
	switch {
	case j.AtLeast != 0:
		return "at least " + j.value(j.AtLeast)
	case j.AtMost != 0:
		return "at most " + j.value(j.AtMost)
	}
	return ""
}

// aim spells the aim, and whether it is reached.
func (j *Judgement) aim() string {
	if j.AimReached() {
		return j.value(j.Aim) + ": reached"
	}
	if j.Aim != 0 {
		return j.value(j.Aim)
	}
	return ""
}

// value spells a ratio, an exponent or a difference.
func (j *Judgement) value(v float64) string {
	switch j.Unit {
	case "":
		return Number(v) + "×"
	case exponentUnit:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return Number(v) + " " + j.Unit
	}
}

// Number gives three digits that count, and a comma at each thousand.
func Number(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	if digits < 0 {
		digits = 0
	}
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(math.Abs(v), 'f', digits, 64), ".")
	var b strings.Builder
	if v < 0 {
		b.WriteByte('-')
	}
	for i, d := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		b.WriteString("." + fraction)
	}
	return b.String()
}

// origin says on what the figures came about.
func (r *Report) origin() []string {
	var versions []string
	for name, v := range r.Versions {
		versions = append(versions, name+" "+v)
	}
	slices.Sort(versions)
	lines := []string{r.Machine.String(), strings.Join(versions, ", "), fmt.Sprintf("size %s, seed %d", r.Size, r.Seed)}
	if all := r.byVersion(); len(all) > 1 {
		var each []string
		for _, version := range slices.Sorted(maps.Keys(all)) {
			each = append(each, fmt.Sprintf("%s of %s", strings.Join(all[version], ", "), version))
		}
		lines = append(lines, "not all measures are of one version: "+strings.Join(each, "; "))
	}
	return lines
}

func (r *Result) origin() string {
	return fmt.Sprintf("%s; rounds: %d. Version %s, %s, `go run ./%s`.", r.Data, r.Rounds, r.Origin.Version, r.Origin.Date.Format(time.RFC3339), r.Origin.Command)
}

// Table writes everything for a terminal.
func (r *Report) Table(w io.Writer) error {
	for _, line := range r.origin() {
		fmt.Fprintln(w, line)
	}
	for _, result := range r.Results {
		fmt.Fprintf(w, "\n%s\n%s\n\n", result.Title, result.origin())
		if err := result.values().text(w); err != nil {
			return err
		}
		if len(result.Judged) == 0 {
			continue
		}
		fmt.Fprintln(w)
		if err := result.judgements().text(w); err != nil {
			return err
		}
	}
	return nil
}
