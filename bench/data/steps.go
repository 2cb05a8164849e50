package data

import (
	"fmt"
	"time"
)

// rollOut gives an app that is at rest another image: one Pod after the other is replaced.
func (c *cluster) rollOut() {
	a := c.apps[c.chance.random.IntN(len(c.apps))]
	if a.rolling {
		return
	}
	a.rolling = true
	d := a.deployment
	d.values.runs(d.values[holeApp], "1."+d.values[holeRestarts]+"."+d.values[holeGeneration])
	d.values[holeBound], d.values[holeMade] = c.schedule.clock(), "0"
	d.values[holeReason], d.values[holeMessage] = "ReplicaSetUpdated", "ReplicaSet is progressing."
	bump(d, holeGeneration, 1)
	c.store.update(d)
	c.schedule.after(c.chance.jitter(40*time.Millisecond), func() {
		c.addSet(a)
		c.store.update(d)
		c.replace(a, 0, len(a.pods))
	})
}

// replace goes on with a rollout at its n-th Pod of so many, which is the oldest of those left.
func (c *cluster) replace(a *app, n, of int) {
	d, set, old := a.deployment, a.sets[len(a.sets)-1], a.sets[len(a.sets)-2]
	if n == of {
		d.values[holeReason], d.values[holeMessage] = "NewReplicaSetAvailable", "ReplicaSet has successfully progressed."
		c.store.update(d)
		if len(a.sets) > 2 {
			c.store.remove(a.sets[0])
			a.sets = a.sets[1:]
		}
		a.rolling = false
		return
	}
	if quarter := (of + 3) / 4; n%quarter == 0 { // both are scaled in steps
		by := min(quarter, of-n)
		c.scale(set, by)
		c.scale(old, -by)
	}
	c.startPod(c.newPod(set, podPending), func(p *object) {
		a.pods = append(a.pods, p)
		bump(set, holeMade, 1)
		bump(set, holeServing, 1)
		c.store.update(set)
		bump(d, holeMade, 1)
		c.store.update(d)
		c.endPod(a, old)
		c.replace(a, n+1, of)
	})
}

func (c *cluster) scale(set *object, by int) {
	bump(set, holeReplicas, by)
	bump(set, holeGeneration, 1)
	c.store.update(set)
}

// startPod brings a Pod from its creation to where it is ready.
func (c *cluster) startPod(p *object, ready func(*object)) {
	c.store.create(p)
	next := func(d time.Duration, s stage, then func()) {
		c.schedule.after(c.chance.jitter(d), func() {
			p.text += int(s) - p.text%int(podStages)
			then()
		})
	}
	next(15*time.Millisecond, podScheduled, func() {
		c.bind(p)
		c.store.update(p)
		c.reporter.report(p, "Scheduled", fmt.Sprintf("Successfully assigned %s/%s to %s", p.values[holeNamespace], p.values[holeName], p.values[holeNode]), "default-scheduler", "Normal")
		next(250*time.Millisecond, podCreating, func() {
			p.values[holePhase] = "Pending"
			c.store.update(p)
			next(2*time.Second, podRunning, func() {
				p.values[holePhase], p.values[holeStarted], p.values[holeReadySince] = "Running", c.schedule.clock(), c.schedule.clock()
				c.store.update(p)
				c.reporter.report(p, "Started", "Started container web", "kubelet", "Normal")
				next(5*time.Second, podRunning, func() {
					c.setReady(p, true)
					ready(p)
				})
			})
		})
	})
}

func (c *cluster) setReady(p *object, ready bool) {
	p.values[holeReady], p.values[holeUp], p.values[holeReadySince] = "False", "false", c.schedule.clock()
	if ready {
		p.values[holeReady], p.values[holeUp] = "True", "true"
	}
	c.store.update(p)
}

// endPod deletes the oldest Pod of an app.
func (c *cluster) endPod(a *app, set *object) {
	p := a.pods[0]
	a.pods = a.pods[1:]
	p.text = int(podTerminating)
	p.values[holeReadySince] = c.schedule.clock()
	c.store.update(p)
	c.reporter.report(p, "Killing", "Stopping container web", "kubelet", "Normal")
	c.schedule.after(c.chance.jitter(2*time.Second), func() {
		c.setReady(p, false)
		c.schedule.after(c.chance.jitter(time.Second), func() {
			c.store.remove(p)
			if set.gone() {
				return
			}
			bump(set, holeMade, -1)
			bump(set, holeServing, -1)
			c.store.update(set)
		})
	})
}

// flap makes a Pod fail its probe for a while; a third of them are started again.
func (c *cluster) flap() {
	a := c.apps[c.chance.random.IntN(len(c.apps))]
	p := a.pods[c.chance.random.IntN(len(a.pods))]
	if p.values[holeReady] != "True" {
		return
	}
	if c.chance.random.IntN(3) == 0 {
		bump(p, holeRestarts, 1)
		p.values[holeStarted] = c.schedule.clock()
	}
	c.setReady(p, false)
	if p.about != nil && !p.about.gone() {
		bump(p.about, holeRestarts, 1)
		c.reporter.renew(p.about)
		c.store.update(p.about)
	} else {
		p.about = c.reporter.report(p, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", "kubelet", "Warning")
	}
	c.schedule.after(c.chance.jitter(15*time.Second), func() {
		if p.text == int(podRunning) && !p.gone() {
			c.setReady(p, true)
		}
	})
}

// runJob runs the n-th CronJob once, and then again.
func (c *cluster) runJob(n int) {
	name := fmt.Sprintf("batch-%d", n)
	job := c.store.newObject(jobs, fmt.Sprintf("team-%d", n%40), fmt.Sprintf("%s-%d", name, 29_000_000+c.schedule.now/time.Minute)+c.chance.suffix())
	job.values.runs(name, "2.4.1")
	job.values[holeHash] = c.chance.hex(10)
	job.values[holeOwner], job.values[holeOwnerUID] = name, c.chance.uid()
	job.values[holeServing] = "0"
	c.store.create(job)
	c.startPod(c.newPod(job, podPending), func(p *object) {
		job.values[holeServing] = "1"
		c.store.update(job)
		c.schedule.after(c.chance.jitter(jobRuns), func() { c.endJob(job, p, func() { c.runJob(n) }) })
	})
}

func (c *cluster) endJob(job, p *object, again func()) {
	p.text = int(podStages) + int(podEnded)
	job.text, job.values[holeServing] = 1, "0"
	p.values[holePhase], p.values[holeReason], p.values[holeReadySince] = "Succeeded", "Completed", c.schedule.clock()
	if c.chance.random.IntN(10) == 0 {
		job.text = 2
		p.values[holePhase], p.values[holeReason], p.values[holeRestarts] = "Failed", "Error", "1"
	}
	c.store.update(p)
	c.store.update(job)
	c.reporter.report(job, p.values[holeReason], "Job has ended", "job-controller", "Normal")
	c.schedule.after(c.chance.jitter(jobStay), func() {
		c.store.remove(job)
		c.store.remove(p)
		again()
	})
}
