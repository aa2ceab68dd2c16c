// Does one workload on one of Go's work queues and prints what it took, as one line of JSON: how long
// each pass took, how many keys each pass handed out, and the CPU time of all passes. The first passes
// warm up, and check that every key comes out once. benches/src/bin/workqueue_work.rs does the same on
// ours.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

var (
	peer     = flag.String("peer", "client-go", "client-go or controller-runtime")
	workload = flag.String("workload", "cycle", "what to do")
	count    = flag.Int("keys", 100_000, "how many keys a pass handles")
	budget   = flag.Duration("budget", 300*time.Millisecond, "how long to repeat passes")
)

const (
	warmUp    = 2
	minPasses = 3
	workers   = 16
	levels    = 5
	batchSize = 64
	dueAfter  = 200 * time.Millisecond
)

type result struct {
	WallNs    []int64 `json:"wall_ns"`
	CPUNs     []int64 `json:"cpu_ns"`
	HandedOut []int   `json:"handed_out"`
}

// A pass returns what its measured part took and how many keys were handed out, and passes each of them
// to see when that is not nil.
type pass func(see func(string)) (took, int)

// A stopwatch measures wall time and CPU time at once.
type stopwatch struct {
	start time.Time
	cpu   time.Duration
}

type took struct{ wall, cpu time.Duration }

func startWatch() stopwatch { return stopwatch{cpu: cpuTime(), start: time.Now()} }

func (w stopwatch) read() took { return w.readSince(w.start) }

// readSince is as read, but the wall time counts from start, until which nothing ran.
func (w stopwatch) readSince(start time.Time) took {
	return took{wall: time.Since(start), cpu: cpuTime() - w.cpu}
}

func main() {
	flag.Parse()
	keys := makeKeys(*count)
	if *workload == "memory" {
		allocations, bytes := memory(keys)
		fmt.Printf("%s: allocations per key in the steady state\n  cycle %.3f\n", *peer, allocations)
		fmt.Printf("%s: bytes per key besides what the key points to\n  queued %.1f\n", *peer, bytes)
		return
	}
	run := workloads(*peer, *workload, keys)
	if run == nil {
		fmt.Fprintf(os.Stderr, "no workload %q of %q\n", *workload, *peer)
		os.Exit(2)
	}
	for range warmUp {
		check(run, keys)
	}
	runtime.GC()
	var out result
	start := time.Now()
	for len(out.WallNs) < minPasses || time.Since(start) < *budget {
		took, handedOut := run(nil)
		out.WallNs = append(out.WallNs, took.wall.Nanoseconds())
		out.CPUNs = append(out.CPUNs, took.cpu.Nanoseconds())
		out.HandedOut = append(out.HandedOut, handedOut)
	}
	report(out)
}

// check runs one pass and sees that every key was handed out, and none twice.
func check(run pass, keys []string) {
	seen := make(map[string]int, len(keys))
	run(func(key string) { seen[key]++ })
	if len(seen) == 0 {
		return // The workload hands nothing out.
	}
	for _, key := range keys {
		if seen[key] != 1 {
			fmt.Fprintf(os.Stderr, "%s was handed out %d times\n", key, seen[key])
			os.Exit(1)
		}
	}
}

// makeKeys makes keys of 40 bytes, like those of pods.
func makeKeys(count int) []string {
	keys := make([]string, count)
	for i := range keys {
		keys[i] = fmt.Sprintf("namespace-%04d/deployment-%08x-%05d", i%100, uint32(i)*2654435761, i%100_000)
	}
	if len(keys[0]) != 40 {
		panic(len(keys[0]))
	}
	return keys
}

func cpuTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}

func report(out result) {
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		panic(err)
	}
}
