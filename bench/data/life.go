package data

import (
	"fmt"
	"strconv"
	"time"
)

// Events and their frequency: see "Data" in METHODOLOGY.md. All rates but those of nodes follow from how many nodes there are.
const (
	livePerNode = 40 // objects of all kinds

	leaseEvery  = 10 * time.Second // the kubelet's
	statusEvery = 35 * time.Second // of a node whose images come and go; the kubelet's is 5 minutes where nothing changes

	replaceEvery   = 110 * time.Second // a Pod by a rollout, in each node
	flapEvery      = 70 * time.Second  // a Pod's readiness
	configMapEvery = 400 * time.Second

	jobRuns = 60 * time.Second
	jobStay = 100 * time.Second // after its end

	// Events have a shorter life than by default, which is an hour: else most objects would be Events, since a cluster that does as
	// much as this one has many. As in the API server, those made within a minute share an etcd lease.
	eventTTL      = 2 * time.Minute
	leaseReuse    = time.Minute
	leaseMaxCount = 1000

	comingToLife = 6 * time.Minute // until all that happens has come to happen as often as it ends
)

// The shares of the living objects; the rest are Pods and Events.
const (
	appShare       = 0.06 // Deployments, each with two ReplicaSets
	configMapShare = 0.08
	jobShare       = 0.01
	eventShare     = 0.20
)

// An app is a Deployment and what belongs to it.
type app struct {
	deployment *object
	sets       []*object // ReplicaSets, the one in use last
	pods       []*object // that serve, oldest first
	rolling    bool
}

// populate makes the cluster and plans its life.
func (c *cluster) populate(live int) {
	n := max(live/livePerNode, 1)
	for i := range n {
		c.addNode(i)
	}
	share := func(of float64) int { return max(int(of*float64(live)), 1) }
	rest := live - 2*n - 3*share(appShare) - share(configMapShare) - 2*share(jobShare) - share(eventShare)
	for i := range share(appShare) {
		c.addApp(i)
	}
	for i := range max(rest, len(c.apps)) {
		a := c.apps[i%len(c.apps)]
		if i >= len(c.apps) { // each has one; some have many
			a = c.apps[int(float64(len(c.apps))*c.chance.random.Float64()*c.chance.random.Float64())]
		}
		c.addPod(a)
	}
	for i := range share(configMapShare) {
		o := c.store.newObject(configMaps, c.apps[i%len(c.apps)].namespace(), fmt.Sprintf("config-%d", i))
		o.values.runs(fmt.Sprintf("service-%d", i), "1.0.0")
		o.values[holeID] = c.chance.hex(64)
		c.store.create(o)
	}
	for i := range share(jobShare) {
		c.schedule.after(time.Duration(c.chance.random.Int64N(int64(jobRuns+jobStay))), func() { c.runJob(i) })
	}
	perCluster := func(d time.Duration) time.Duration { return d / time.Duration(n) }
	pods := len(c.store.living[pods])
	c.schedule.every(perCluster(replaceEvery)*time.Duration(max(pods/len(c.apps), 1)), c.rollOut)
	c.schedule.every(perCluster(flapEvery), c.flap)
	c.schedule.every(perCluster(configMapEvery), func() {
		o := c.store.living[configMaps][c.chance.random.IntN(len(c.store.living[configMaps]))]
		o.values[holeID] = c.chance.hex(64)
		c.store.update(o)
	})
}

func (c *cluster) addNode(i int) {
	node := c.store.newObject(nodes, "", fmt.Sprintf("node-%04d", i))
	node.values[holeHost], node.values[holeHash], node.values[holeOwnerUID] = fmt.Sprintf("10.0.%d.%d", i/250, i%250), c.chance.hex(32), c.chance.uid()
	node.values.runs("service-0", "1.0.0")
	c.store.create(node)
	lease := c.store.newObject(leases, "kube-node-lease", node.values[holeName])
	lease.values[holeOwnerUID] = node.values[holeUID]
	renew := func() { lease.values[holeStarted] = begin.Add(c.schedule.now).Format("2006-01-02T15:04:05.000000Z") }
	renew()
	c.store.create(lease)
	c.schedule.repeat(leaseEvery, func() { renew(); c.store.update(lease) })
	c.schedule.repeat(statusEvery, func() {
		node.values.runs(c.apps[c.chance.random.IntN(len(c.apps))].deployment.values[holeApp], fmt.Sprintf("1.0.%d", c.chance.random.IntN(100)))
		c.store.update(node)
	})
}

func (a *app) namespace() string { return a.deployment.values[holeNamespace] }

func (c *cluster) addApp(i int) {
	name := fmt.Sprintf("service-%d", i)
	d := c.store.newObject(deployments, fmt.Sprintf("team-%d", i%40), name)
	d.values.runs(name, "1.0.0")
	d.values[holeBound] = c.schedule.clock()
	d.values[holeReplicas], d.values[holeMade], d.values[holeServing], d.values[holeRestarts] = "0", "0", "0", "0"
	d.values[holeReason], d.values[holeMessage] = "NewReplicaSetAvailable", "ReplicaSet has successfully progressed."
	a := &app{deployment: d}
	c.store.create(d)
	for range 2 {
		c.addSet(a)
	}
	c.apps = append(c.apps, a)
}

// addSet gives an app another ReplicaSet.
func (c *cluster) addSet(a *app) {
	d := a.deployment
	bump(d, holeRestarts, 1)
	hash := c.chance.hex(10)
	set := c.store.newObject(replicaSets, a.namespace(), d.values[holeName]+"-"+hash)
	set.values.runs(d.values[holeApp], d.values[holeTag])
	set.values[holeHash], set.values[holeStarted] = hash, c.schedule.clock()
	set.values[holeOwner], set.values[holeOwnerUID] = d.values[holeName], d.values[holeUID]
	set.values[holeReplicas], set.values[holeMade], set.values[holeServing], set.values[holeRestarts] = "0", "0", "0", d.values[holeRestarts]
	a.sets = append(a.sets, set)
	c.store.create(set)
}

// addPod gives an app a Pod that serves already.
func (c *cluster) addPod(a *app) {
	set := a.sets[len(a.sets)-1]
	p := c.newPod(set, podRunning)
	c.bind(p)
	p.values[holeStarted], p.values[holeReady], p.values[holeUp] = c.schedule.clock(), "True", "true"
	c.store.create(p)
	a.pods = append(a.pods, p)
	for _, h := range []hole{holeReplicas, holeMade, holeServing} {
		bump(set, h, 1)
	}
	for _, h := range []hole{holeReplicas, holeMade, holeServing} {
		a.deployment.values[h] = strconv.Itoa(len(a.pods))
	}
}

// newPod is one of a ReplicaSet or a Job.
func (c *cluster) newPod(of *object, s stage) *object {
	p := c.store.newObject(pods, of.values[holeNamespace], of.values[holeName]+"-"+c.chance.suffix())
	p.text = int(s)
	if of.kind == jobs {
		p.text += int(podStages)
	}
	p.values.runs(of.values[holeApp], of.values[holeTag])
	p.values[holeHash] = of.values[holeHash]
	p.values[holeOwner], p.values[holeOwnerUID] = of.values[holeName], of.values[holeUID]
	p.values[holePhase], p.values[holeReady], p.values[holeUp], p.values[holeRestarts] = "Running", "False", "false", "0"
	return p
}

// bind gives a Pod its node.
func (c *cluster) bind(p *object) {
	node := c.store.living[nodes][c.chance.random.IntN(len(c.store.living[nodes]))]
	p.values[holeNode], p.values[holeHost], p.values[holeBound] = node.values[holeName], node.values[holeHost], c.schedule.clock()
	p.values[holeIP], p.values[holeReadySince] = fmt.Sprintf("10.244.%d.%d", c.chance.random.IntN(250), c.chance.random.IntN(250)), c.schedule.clock()
	p.values[holeID], p.values[holeID2] = c.chance.hex(64), c.chance.hex(64)
}

// bump adds to a number.
func bump(o *object, h hole, by int) {
	n, err := strconv.Atoi(o.values[h])
	if err != nil {
		n = 0 // it was not filled
	}
	o.values[h] = strconv.Itoa(n + by)
}
