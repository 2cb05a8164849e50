package measure

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A chart shows one quantity of all ways of an experiment: bars, or a line where the ways are sizes.
type chart struct {
	result   *Result
	quantity Quantity
	ways     []*Measured // that have the quantity
}

// charts are those of the quantities of which something has to hold.
func (r *Result) charts() (all []chart) {
	for _, q := range r.Quantities {
		if !slices.ContainsFunc(r.Judged, func(j *Judgement) bool { return j.Bound() && j.Quantity == q.Name }) {
			continue
		}
		c := chart{result: r, quantity: q}
		for _, m := range r.Ways {
			if len(m.Values[q.Name]) > 0 {
				c.ways = append(c.ways, m)
			}
		}
		all = append(all, c)
	}
	return all
}

// chartFile names the charts of an experiment.
func (r *Result) chartFile() string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(r.Name)) + ".svg"
}

// Charts writes all charts of a report into a folder, as SVG: those of an experiment below each other.
func (r *Report) Charts(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, result := range r.Results {
		all := result.charts()
		if len(all) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, result.chartFile()), []byte(drawn(all)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// drawn puts charts below each other.
func drawn(all []chart) string {
	var charts, b strings.Builder
	height := 0
	for _, c := range all {
		fmt.Fprintf(&charts, `<svg y="%d" width="%d" height="%d">`+"\n", height, chartWidth, c.height())
		c.draw(&charts)
		fmt.Fprintln(&charts, "</svg>")
		height += c.height()
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n",
		chartWidth, height, chartWidth, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n%s</svg>\n", charts.String())
	return b.String()
}

// The measures of a chart, in pixels.
const (
	chartWidth = 760
	nameWidth  = 260
	valueWidth = 110
	rowHeight  = 28
	headHeight = 46
	plotHeight = 240
)

func (c chart) height() int {
	if c.grows() {
		return headHeight + plotHeight + 50
	}
	return headHeight + rowHeight*len(c.ways) + 12
}

func (c chart) draw(w io.Writer) {
	label(w, 10, 18, "start", c.result.Title)
	label(w, 10, 36, "start", c.quantity.Name+", "+c.quantity.Unit+"; median, and the smallest and largest run")
	if c.grows() {
		c.drawLine(w)
	} else {
		c.drawBars(w)
	}
}

// grows reports whether the ways are sizes of something, and cost anything.
func (c chart) grows() bool {
	return c.largest() > 0 && !slices.ContainsFunc(c.ways, func(m *Measured) bool { return m.Factor == 0 || m.Factor == c.ways[0].Factor && m != c.ways[0] })
}

func label(w io.Writer, x, y float64, anchor, text string) {
	fmt.Fprintf(w, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#222">%s</text>`+"\n", x, y, anchor, html.EscapeString(text))
}

func stroke(w io.Writer, x1, y1, x2, y2 float64, style string) {
	fmt.Fprintf(w, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`+"\n", x1, y1, x2, y2, style)
}

func (c chart) largest() (top float64) {
	for _, m := range c.ways {
		top = max(top, slices.Max(m.Values[c.quantity.Name]))
	}
	return top
}

func (c chart) drawBars(w io.Writer) {
	scale := 0.0
	if top := c.largest(); top > 0 {
		scale = (chartWidth - nameWidth - valueWidth) / top
	}
	for i, m := range c.ways {
		all := m.Values[c.quantity.Name]
		y := float64(headHeight + rowHeight*i)
		colour := "#9aa5b1"
		if i == 0 {
			colour = "#326ce5" // the first way is ours
		}
		label(w, nameWidth-8, y+18, "end", m.Name)
		fmt.Fprintf(w, `<rect x="%d" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", nameWidth, y+5, max(Median(all), 0)*scale, rowHeight-10, colour)
		low, high := nameWidth+slices.Min(all)*scale, nameWidth+slices.Max(all)*scale
		stroke(w, low, y+rowHeight/2, high, y+rowHeight/2, `stroke="#222"`)
		label(w, max(high, nameWidth)+8, y+18, "start", Number(Median(all)))
	}
}

// drawLine draws the cost over the factor, both logarithmic. A dashed line shows linear growth from the smallest size; a cost
// that grows faster is steeper.
func (c chart) drawLine(w io.Writer) {
	const left, right, top, bottom = 130.0, chartWidth - 60.0, headHeight + 14.0, headHeight + plotHeight
	ways := slices.SortedFunc(slices.Values(c.ways), func(a, b *Measured) int { return cmp.Compare(a.Factor, b.Factor) })
	first, last := ways[0], ways[len(ways)-1]
	lowest, highest := math.Inf(1), 0.0
	for _, m := range ways {
		if least := slices.Min(m.Values[c.quantity.Name]); least > 0 {
			lowest = min(lowest, least)
		}
	}
	linear := Median(first.Values[c.quantity.Name]) * last.Factor / first.Factor
	highest = max(c.largest(), linear, 2*lowest)
	x := func(factor float64) float64 {
		return left + (right-left)*math.Log(factor/first.Factor)/math.Log(last.Factor/first.Factor)
	}
	y := func(v float64) float64 {
		return bottom - (bottom-top)*math.Log(max(v, lowest)/lowest)/math.Log(highest/lowest) // logarithms have no 0
	}
	stroke(w, left, bottom, right, bottom, `stroke="#222"`)
	stroke(w, left, bottom, left, top, `stroke="#222"`)
	stroke(w, left, y(linear*first.Factor/last.Factor), right, y(linear), `stroke="#9aa5b1" stroke-dasharray="6 4"`)
	label(w, left-8, top+4, "end", Number(highest))
	label(w, left-8, bottom+4, "end", Number(lowest))
	var points []string
	for _, m := range ways {
		all := m.Values[c.quantity.Name]
		px, py := x(m.Factor), y(Median(all))
		points = append(points, fmt.Sprintf("%.1f,%.1f", px, py))
		stroke(w, px, y(slices.Min(all)), px, y(slices.Max(all)), `stroke="#222"`)
		fmt.Fprintf(w, `<circle cx="%.1f" cy="%.1f" r="4" fill="#326ce5"/>`+"\n", px, py)
		label(w, px, bottom+18, "middle", m.Name)
	}
	fmt.Fprintf(w, `<polyline points="%s" fill="none" stroke="#326ce5" stroke-width="2"/>`+"\n", strings.Join(points, " "))
	label(w, right, bottom+38, "end", "both axes are logarithmic; dashed: linear from the smallest")
}
