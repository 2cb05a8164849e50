package data

import (
	"container/heap"
	"time"
)

// A task is what happens at some time.
type task struct {
	at    time.Duration // since the beginning
	order int           // of two at one time, the one that was planned first comes first
	do    func()
}

type agenda []task

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(task)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	(*a)[len(*a)-1] = task{} // what it would do is kept no longer
	*a = (*a)[:len(*a)-1]
	return last
}

// A schedule is the time of a cluster, and what will happen.
type schedule struct {
	chance  *chance
	now     time.Duration
	agenda  agenda
	planned int
}

// begin is the start of each generated cluster, a midnight.
var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func (s *schedule) after(d time.Duration, do func()) {
	s.planned++
	heap.Push(&s.agenda, task{s.now + d, s.planned, do})
}

// every plans something again and again, with as much time between as a process without memory has.
func (s *schedule) every(mean time.Duration, do func()) {
	s.after(time.Duration(s.chance.random.ExpFloat64()*float64(mean)), func() {
		do()
		s.every(mean, do)
	})
}

// repeat does something at regular times, from anywhere in the first on.
func (s *schedule) repeat(every time.Duration, do func()) {
	var again func()
	again = func() {
		do()
		s.after(s.chance.jitter(every), again)
	}
	s.after(time.Duration(s.chance.random.Int64N(int64(every))), again)
}

// step does what is planned next.
func (s *schedule) step() {
	next := heap.Pop(&s.agenda).(task)
	s.now = next.at
	next.do()
}

func (s *schedule) clock() string { return begin.Add(s.now).Format(time.RFC3339) }
