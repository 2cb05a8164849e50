package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// A Delta is what the record says of one.
type Delta struct {
	Version
	Resource
	Seq             int64
	Namespace, Name string
	Type            string
	What            string // for the table: listed, or what it is if no request joins, such as a binding
	Manager         string // "" if none is named
	Evidence        string // how it is proved
	Hint            string
	Observed        time.Time
	Patch           string
}

// A Finding is a delta that the record names wrongly, or does not name and should.
type Finding struct {
	Delta
	Truth string // the manager, or why none is known
}

// String is a line for people.
func (f Finding) String() string {
	return fmt.Sprintf("seq %d %s %s %s/%s, resource version %d of %s: named %q by %s; truth: %s; patch: %s",
		f.Seq, f.Type, f.Resource.Name, f.Namespace, f.Delta.Name, f.RV, f.Observed.UTC().Format("15:04:05.000"), f.Manager, f.Evidence, f.Truth, cmp.Or(f.Patch, "none"))
}

// A Verdict is what is found in one record.
type Verdict struct {
	Classes                []Class
	Wrong                  []Finding
	Unnamed                []Finding // took a field, and are not named
	HintsRight, HintsWrong int
	NotJudged              map[Resource]int // deltas by resource of which the log keeps no bodies
}

// Judge compares a record with an audit log. People are the users that are not controllers.
func Judge(log Log, deltas []Delta, people []string) Verdict {
	j, v, table := newJoin(log.writes), Verdict{NotJudged: map[Resource]int{}}, map[classKey]*Class{}
	for _, d := range deltas {
		if log.bodiless[d.Resource] {
			v.NotJudged[d.Resource]++
			continue
		}
		writers := j.writers(d.Version)
		key := keyOf(d, writers, people)
		if table[key] == nil {
			table[key] = &Class{classKey: key}
		}
		v.judge(table[key], d, writers, j)
	}
	for _, class := range table {
		v.Classes = append(v.Classes, *class)
	}
	slices.SortFunc(v.Classes, func(a, b Class) int { return a.compare(b.classKey) })
	return v
}

func (v *Verdict) judge(class *Class, d Delta, writers []Write, j join) {
	truth := truthOf(writers)
	finding := Finding{Delta: d, Truth: truth.String()}
	class.count(d)
	if d.Manager != "" && !truth.is(d.Manager) {
		class.Wrong++
		v.Wrong = append(v.Wrong, finding)
	}
	switch {
	case d.Hint == "":
	case truth.is(d.Hint):
		v.HintsRight++
	default:
		v.HintsWrong++
	}
	if d.Type != "Updated" || len(writers) != 1 || !j.took(writers[0]) {
		return
	}
	class.Took++
	if d.Manager != "" {
		class.TookNamed++
		return
	}
	v.Unnamed = append(v.Unnamed, finding)
}

// A truth is who wrote a version: the managers of the requests that may have.
type truth []string

func truthOf(writers []Write) (t truth) {
	for _, w := range writers {
		t = append(t, w.Manager)
	}
	return t
}

func (t truth) is(manager string) bool { return len(t) == 1 && t[0] == manager }

// String implements fmt.Stringer.
func (t truth) String() string {
	switch len(t) {
	case 0:
		return "unknown, no request joins"
	case 1:
		return strconv.Quote(t[0])
	}
	return fmt.Sprintf("unknown, several requests join: %q", []string(t))
}

// floorPercent is how many of a hundred updates that took a field must be named.
const floorPercent = 98

// Floor returns how many updates took a field, and how many of these are named.
func (v Verdict) Floor() (took, named int) {
	for _, c := range v.Classes {
		took += c.Took
		named += c.TookNamed
	}
	return took, named
}

// Err says why the record fails, nil if it does not.
func (v Verdict) Err() error {
	took, named := v.Floor()
	switch {
	case len(v.Wrong) > 0:
		return fmt.Errorf("%d deltas name a wrong manager", len(v.Wrong))
	case took == 0:
		return fmt.Errorf("no update in the record took a field: nothing was judged")
	case named*100 < took*floorPercent:
		return fmt.Errorf("%s of %d updates that took a field are named; %d %% are required", share(named, took), took, floorPercent)
	}
	return nil
}

func compareResources(a, b Resource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
}
