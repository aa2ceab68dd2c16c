package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// usage is what this process has used: seconds, and bytes.
type usage struct {
	User    float64 `json:"user"`
	System  float64 `json:"system"`
	PeakRSS int64   `json:"peak_rss"`
}

// phase is what one phase took; the memory is the peak since the process began.
type phase struct {
	Count int     `json:"count"`
	Wall  float64 `json:"wall"`
	usage
	// From sending on the wire to the handler's call, in microseconds.
	P50 float64 `json:"p50_us,omitempty"`
	P99 float64 `json:"p99_us,omitempty"`
}

// consumer is a handler that counts, and keeps latencies while `latencies` is set.
type consumer struct {
	server    string
	events    atomic.Int64
	target    atomic.Int64
	reached   chan struct{}
	handlers  int
	keep      atomic.Bool
	latencies []int64
}

func consume(arguments []string) error {
	flags := flag.NewFlagSet("consume", flag.ExitOnError)
	server := flags.String("server", "", "the load server")
	pods := flags.Int("pods", 100_000, "how many pods it has")
	asJSON := flags.Bool("json", false, "JSON instead of client-go's default")
	handlers := flags.Int("handlers", 1, "how many handlers count")
	phases := flags.String("phases", "", "what it is put through: updates as count@rate, rate 0 is as fast as possible, or relist@percent")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	config := &rest.Config{Host: *server}
	if *asJSON {
		config.ContentType = "application/json"
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	c := &consumer{server: *server, reached: make(chan struct{}, 1), handlers: *handlers}
	report := map[string]phase{}
	before, start := used(), time.Now()
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	var synced []cache.InformerSynced
	for range *handlers {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: c.updated})
		if err != nil {
			return err
		}
		synced = append(synced, registration.HasSynced)
	}
	stop := make(chan struct{})
	defer close(stop)
	go informer.Run(stop)
	if !cache.WaitForCacheSync(stop, synced...) {
		return fmt.Errorf("the informer stopped")
	}
	report["sync"] = since(before, start, *pods)
	if count := len(informer.GetStore().ListKeys()); count != *pods {
		return fmt.Errorf("%d pods, not %d", count, *pods)
	}
	for _, text := range strings.Fields(*phases) {
		// What is left to do of the phase before is not part of this one.
		time.Sleep(time.Second)
		if rest, found := strings.CutPrefix(text, "relist"); found {
			report[text], err = c.relist(*pods, strings.TrimPrefix(rest, "@"))
		} else {
			report[text], err = c.phase(text)
		}
		if err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// phase asks for updates and waits until the handler has been called with all of them.
func (c *consumer) phase(text string) (phase, error) {
	count, rate, _ := strings.Cut(text, "@")
	number, err := strconv.Atoi(count)
	if err != nil {
		return phase{}, err
	}
	c.latencies = make([]int64, 0, number)
	c.keep.Store(rate != "0")
	c.target.Store(c.events.Load() + int64(number*c.handlers))
	before, start := used(), time.Now()
	response, err := http.Post(c.server+"/bench/updates?count="+count+"&rate="+rate, "", nil)
	if err != nil {
		return phase{}, err
	}
	response.Body.Close()
	<-c.reached
	out := since(before, start, number)
	if rate != "0" {
		slices.Sort(c.latencies)
		at := func(part float64) float64 {
			return float64(c.latencies[int(part*float64(len(c.latencies)-1))]) / 1000
		}
		out.P50, out.P99 = at(0.50), at(0.99)
	}
	return out, nil
}

// relist changes some pods, in percent, lets the watch expire, and waits until everything was sent again and there is nothing left to do.
func (c *consumer) relist(pods int, changed string) (phase, error) {
	sent, err := c.listsSent()
	if err != nil {
		return phase{}, err
	}
	before, start := used(), time.Now()
	response, err := http.Post(c.server+"/bench/expire?changed="+changed, "", nil)
	if err != nil {
		return phase{}, err
	}
	response.Body.Close()
	for now := sent; now == sent; time.Sleep(100 * time.Millisecond) {
		if now, err = c.listsSent(); err != nil {
			return phase{}, err
		}
	}
	last := -1.0
	for {
		out := since(before, start, pods)
		if out.User+out.System-last <= 0.01 {
			return out, nil
		}
		last = out.User + out.System
		time.Sleep(500 * time.Millisecond)
	}
}

// listsSent is how many watches have been sent all pods.
func (c *consumer) listsSent() (int, error) {
	response, err := http.Get(c.server + "/bench/status")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var status struct {
		Pods struct {
			Whole int `json:"whole"`
		} `json:"pods"`
	}
	err = json.NewDecoder(response.Body).Decode(&status)
	return status.Pods.Whole, err
}

func (c *consumer) updated(_, object any) {
	if c.keep.Load() {
		sent, err := strconv.ParseInt(object.(*corev1.Pod).Annotations[sentAnnotation], 10, 64)
		if err == nil {
			c.latencies = append(c.latencies, time.Now().UnixNano()-sent)
		}
	}
	if c.events.Add(1) == c.target.Load() {
		c.reached <- struct{}{}
	}
}

func since(before usage, start time.Time, count int) phase {
	wall, now := time.Since(start), used()
	now.User, now.System = now.User-before.User, now.System-before.System
	return phase{Count: count, Wall: wall.Seconds(), usage: now}
}

// used reads what the kernel has counted.
func used() usage {
	var out usage
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		panic(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	ticks := func(text string) float64 { n, _ := strconv.ParseFloat(text, 64); return n / 100 }
	out.User, out.System = ticks(fields[11]), ticks(fields[12])
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kibibytes, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			out.PeakRSS = kibibytes << 10
		}
	}
	return out
}
