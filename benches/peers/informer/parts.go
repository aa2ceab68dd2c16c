package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// The parts of an informer, each by itself. benches/src/informer/parts.rs does the same with ours.

const (
	partPods  = 100_000
	perNode   = 20
	passes    = 7
	writeRate = 5000
	writeFor  = 2 * time.Second
)

// parts prints the nanoseconds that one operation takes, by name; of each the median of some passes.
func parts(arguments []string) error {
	flags := flag.NewFlagSet("parts", flag.ExitOnError)
	_ = flags.Parse(arguments)
	pods := make([]any, partPods)
	newer := make([]any, partPods)
	for i := range pods {
		pods[i], newer[i] = smallPod(i, "1"), smallPod(i, "2")
	}
	out := map[string]float64{}
	measure := func(name string, operations int, pass func()) {
		pass()
		times := make([]float64, passes)
		for i := range times {
			start := time.Now()
			pass()
			times[i] = float64(time.Since(start).Nanoseconds()) / float64(operations)
		}
		slices.Sort(times)
		out[name] = times[passes/2]
	}
	fifoParts(pods, measure)

	indexer := newIndexer(pods)
	turn := 0
	measure("store-update", partPods, func() {
		turn++
		for _, pod := range [][]any{newer, pods}[turn%2] {
			_ = indexer.Update(pod)
		}
	})
	found := 0
	measure("by-index", partPods/perNode, func() {
		for node := range partPods / perNode {
			objects, _ := indexer.ByIndex("node", nodeName(node))
			found += len(objects)
		}
	})
	if found != (passes+1)*partPods {
		return fmt.Errorf("the index found %d", found)
	}
	measure("list", 20, func() {
		for range 20 {
			found += len(indexer.List())
		}
	})
	out["writer-p99"] = writerP99(indexer, [][]any{newer, pods})
	return json.NewEncoder(os.Stdout).Encode(out)
}

// fifoParts measures the queue as a shared informer of client-go sets it up.
func fifoParts(pods []any, measure func(string, int, func())) {
	fifo := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
		KeyFunction: cache.MetaNamespaceKeyFunc, AtomicEvents: true, UnlockWhileProcessing: true,
		EmitDeltaTypeBookmark: true,
	})
	one := func(any, bool) error { return nil }
	measure("fifo-hot", len(pods), func() {
		for _, pod := range pods {
			_ = fifo.Add(pod)
			_, _ = fifo.Pop(one)
		}
	})
	measure("fifo-burst", len(pods), func() {
		for _, pod := range pods {
			_ = fifo.Add(pod)
		}
		left := len(pods)
		for left > 0 {
			_ = fifo.PopBatch(
				func(deltas []cache.Delta, _ bool) error { left -= len(deltas); return nil },
				func(any, bool) error { left--; return nil },
			)
		}
	})
}

func newIndexer(pods []any) cache.Indexer {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"node":               func(object any) ([]string, error) { return []string{object.(*corev1.Pod).Spec.NodeName}, nil },
	})
	_ = indexer.Replace(pods, "1")
	return indexer
}

// writerP99 is the 99th percentile of the time of an update while another goroutine lists in a loop.
func writerP99(indexer cache.Indexer, states [][]any) float64 {
	var stop atomic.Bool
	ended := make(chan int)
	go func() {
		listed := 0
		for !stop.Load() {
			listed += len(indexer.List())
		}
		ended <- listed
	}()
	var took []int64
	begin := time.Now()
	for i := 0; time.Since(begin) < writeFor; i++ {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second / writeRate)))
		start := time.Now()
		_ = indexer.Update(states[i/partPods%2][i%partPods])
		took = append(took, time.Since(start).Nanoseconds())
	}
	stop.Store(true)
	<-ended
	slices.Sort(took)
	return float64(took[len(took)*99/100])
}

func nodeName(number int) string { return "node-" + strconv.Itoa(number) }

func smallPod(number int, version string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-7d4b9c6f5d-%06d", number), Namespace: namespaceOf(number % 500),
			UID: uidOf('a', number), ResourceVersion: version,
		},
		Spec: corev1.PodSpec{NodeName: nodeName(number / perNode)},
	}
}
