package main

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// A queue is what both peers have in common.
type queue interface {
	Add(key string)
	Get() (key string, shutdown bool)
	Done(key string)
	Len() int
	ShutDown()
}

// plain is client-go's queue, without the layers that delay and limit.
func plain() queue { return workqueue.NewTyped[string]() }

// prioritized is controller-runtime's queue, with every key in one of a few priorities. It is given no
// name, so that it keeps no metrics.
type prioritized struct {
	priorityqueue.PriorityQueue[string]
	next int
}

func newPrioritized() queue { return &prioritized{PriorityQueue: priorityqueue.New[string]("")} }

func (q *prioritized) Add(key string) {
	priority := q.next % levels
	q.next++
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, key)
}

func workloads(peer, name string, keys []string) pass {
	fresh := plain
	if peer == "controller-runtime" {
		fresh = newPrioritized
	}
	switch name {
	case "cycle":
		return cycle(fresh(), keys)
	case "workers":
		return many(fresh(), keys)
	case "burst":
		queue := fresh()
		return func(see func(string)) (took, int) { return burst(queue, keys, see) }
	case "burst-fresh":
		return func(see func(string)) (took, int) {
			queue := fresh()
			defer queue.ShutDown()
			return burst(queue, keys, see)
		}
	case "batch":
		return batch(fresh(), keys)
	case "re-add":
		return reAdd(fresh(), keys)
	case "delay":
		return delay(peer, keys)
	case "due":
		return due(peer, keys)
	}
	return nil
}

// cycle adds, gets and finishes one key after the other.
func cycle(queue queue, keys []string) pass {
	return func(see func(string)) (took, int) {
		start, handedOut := startWatch(), 0
		for _, key := range keys {
			queue.Add(key)
			got, _ := queue.Get()
			if see != nil {
				see(got)
			}
			queue.Done(got)
			handedOut++
		}
		return start.read(), handedOut
	}
}

// many has one producer and 16 workers, who have waited since the pass before.
func many(queue queue, keys []string) pass {
	var handedOut atomic.Int64
	var seen sync.Mutex
	var see func(string)
	finished := make(chan struct{})
	for range workers {
		go func() {
			for {
				key, shutdown := queue.Get()
				if shutdown {
					return
				}
				if see != nil {
					seen.Lock()
					see(key)
					seen.Unlock()
				}
				queue.Done(key)
				if handedOut.Add(1) == int64(len(keys)) {
					finished <- struct{}{}
				}
			}
		}()
	}
	return func(with func(string)) (took, int) {
		see = with
		handedOut.Store(0)
		start := startWatch()
		go func() {
			for _, key := range keys {
				queue.Add(key)
			}
		}()
		<-finished
		elapsed := start.read()
		see = nil
		return elapsed, int(handedOut.Load())
	}
}

// burst adds all keys, and then drains the queue.
func burst(queue queue, keys []string, see func(string)) (took, int) {
	start := startWatch()
	for _, key := range keys {
		queue.Add(key)
	}
	handedOut := drain(queue, see)
	return start.read(), handedOut
}

func drain(queue queue, see func(string)) int {
	// Asked once: controller-runtime moves what was added from its buffer to its tree then.
	count := queue.Len()
	for range count {
		key, _ := queue.Get()
		if see != nil {
			see(key)
		}
		queue.Done(key)
	}
	return count
}

// batch adds keys in batches and then drains the queue; client-go knows no batches.
func batch(queue queue, keys []string) pass {
	prioritized, ok := queue.(*prioritized)
	if !ok {
		return func(see func(string)) (took, int) { return burst(queue, keys, see) }
	}
	return func(see func(string)) (took, int) {
		start := startWatch()
		for i := 0; i < len(keys); i += batchSize {
			priority := i / batchSize % levels
			batch := keys[i:min(i+batchSize, len(keys))]
			prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, batch...)
		}
		handedOut := drain(queue, see)
		return start.read(), handedOut
	}
}

// reAdd adds keys that are queued already; nothing is handed out.
func reAdd(queue queue, keys []string) pass {
	for _, key := range keys {
		queue.Add(key)
	}
	return func(func(string)) (took, int) {
		start := startWatch()
		for _, key := range keys {
			queue.Add(key)
		}
		if queue.Len() != len(keys) {
			panic("a key that was queued already was queued twice")
		}
		return start.read(), 0
	}
}

func delaying(peer string) workqueue.TypedDelayingInterface[string] {
	if peer == "controller-runtime" {
		return priorityqueue.New[string]("")
	}
	return workqueue.NewTypedDelayingQueue[string]()
}

// delay adds keys after an hour and a bit, in no order; nothing is handed out.
func delay(peer string, keys []string) pass {
	random := rand.New(rand.NewPCG(1, 2))
	delays := make([]time.Duration, len(keys))
	for i := range delays {
		delays[i] = time.Hour + time.Duration(random.IntN(1_000_000))*time.Millisecond
	}
	return func(func(string)) (took, int) {
		queue := delaying(peer)
		defer queue.ShutDown()
		start := startWatch()
		for i, key := range keys {
			queue.AddAfter(key, delays[i])
		}
		queue.Len() // controller-runtime moves what was added from its buffer to its tree then.
		return start.read(), 0
	}
}

// due adds keys that are all due at the same time, and measures from then until all are handed out.
func due(peer string, keys []string) pass {
	return func(see func(string)) (took, int) {
		for after := dueAfter; ; after *= 2 {
			queue := delaying(peer)
			defer queue.ShutDown()
			at := time.Now().Add(after)
			for _, key := range keys {
				queue.AddAfter(key, time.Until(at))
			}
			if time.Now().After(at) {
				continue // Adding has taken too long: this machine is busy.
			}
			start := startWatch()
			for range keys {
				key, _ := queue.Get()
				if see != nil {
					see(key)
				}
				queue.Done(key)
			}
			return start.readSince(at), len(keys)
		}
	}
}

// memory counts what a cycle allocates in the steady state, and what the queue holds for a queued key.
func memory(keys []string) (allocations, bytes float64) {
	fresh := plain
	if *peer == "controller-runtime" {
		fresh = newPrioritized
	}
	queue := fresh()
	run := cycle(queue, keys)
	run(nil)
	before := memStats()
	run(nil)
	after := memStats()
	allocations = float64(after.Mallocs-before.Mallocs) / float64(len(keys))

	queue = fresh()
	before = memStats()
	for _, key := range keys {
		queue.Add(key)
	}
	if queue.Len() != len(keys) {
		panic("not all were queued")
	}
	after = memStats()
	held := float64(after.HeapAlloc) - float64(before.HeapAlloc)
	runtime.KeepAlive(queue)
	return allocations, held / float64(len(keys))
}

func memStats() runtime.MemStats {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats
}
