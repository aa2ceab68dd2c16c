package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

// server answers for its kinds, and for what clients ask before they begin.
type server struct {
	kinds []*kind
	pods  *kind

	mu sync.Mutex
	// Number of updates requested and sent, and unknown requests.
	asked, sent int
	unknown     map[string]int
	writes      int
}

// serve makes the pods and answers until it is killed. The first line that it prints is its address.
func serve(arguments []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	count := flags.Int("pods", 100_000, "how many pods")
	address := flags.String("address", "127.0.0.1:0", "where to listen")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	items, err := makePods(*count)
	if err != nil {
		return err
	}
	sets, err := makeSets(*count)
	if err != nil {
		return err
	}
	var text, proto int
	for i := range items {
		text, proto = text+len(items[i].json), proto+len(items[i].proto)
	}
	pods := newKind("/api/v1/pods", "pods", "Pod", "v1", items)
	server := &server{
		pods: pods, unknown: map[string]int{},
		kinds: []*kind{pods, newKind("/apis/apps/v1/replicasets", "replicasets", "ReplicaSet", "apps/v1", sets)},
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	// The heap does not shrink: a collection would only take time from the consumer.
	debug.FreeOSMemory()
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(6 << 30)
	fmt.Printf("http://%s\n", listener.Addr())
	fmt.Fprintf(os.Stderr, "%d pods, on average %d bytes of JSON, %d of protobuf\n", *count, text / *count, proto / *count)
	return http.Serve(listener, server)
}

func (s *server) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	for _, kind := range s.kinds {
		if request.URL.Path == kind.path && request.Method == http.MethodGet {
			s.read(kind, out, request)
			return
		}
	}
	switch {
	case request.URL.Path == "/bench/updates":
		s.startUpdates(out, request)
	case request.URL.Path == "/bench/expire":
		changed, _ := strconv.Atoi(request.URL.Query().Get("changed"))
		s.pods.expire(changed)
		reply(out, s.status())
	case request.URL.Path == "/bench/status":
		reply(out, s.status())
	case request.Method != http.MethodGet:
		s.acceptWrite(out, request)
	default:
		if answer := discovery[request.URL.Path]; answer != "" {
			out.Header().Set("Content-Type", "application/json")
			fmt.Fprint(out, answer)
			return
		}
		s.notFound(out, request)
	}
}

// read answers a list or a watch.
func (s *server) read(kind *kind, out http.ResponseWriter, request *http.Request) {
	query, accept := request.URL.Query(), request.Header.Get("Accept")
	format := inJSON
	if strings.Contains(accept, "as=PartialObjectMetadata") {
		format = asMetadata
	} else if strings.Contains(accept, "protobuf") {
		format = inProto
	}
	if watch := query.Get("watch"); watch == "1" || watch == "true" {
		conn, _, err := out.(http.Hijacker).Hijack()
		if err != nil {
			http.Error(out, err.Error(), http.StatusInternalServerError)
		} else if kind.watch(conn, format, query.Get("sendInitialEvents") == "true") != nil {
			conn.Close()
		}
		return
	}
	limit, _ := strconv.Atoi(query.Get("limit"))
	start, _ := strconv.Atoi(strings.TrimPrefix(query.Get("continue"), "from-"))
	out.Header().Set("Content-Type", "application/json")
	if format == inProto {
		out.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	}
	_ = kind.list(out, format, start, limit)
}

// startUpdates sends count updates of pods, as fast as they are taken or rate per second, once a client
// watches. It answers immediately; the status reports when all are sent.
func (s *server) startUpdates(out http.ResponseWriter, request *http.Request) {
	count, err := strconv.Atoi(request.URL.Query().Get("count"))
	rate, _ := strconv.Atoi(request.URL.Query().Get("rate"))
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.asked += count
	s.mu.Unlock()
	go s.sendUpdates(count, rate)
	reply(out, s.status())
}

func (s *server) sendUpdates(count, rate int) {
	s.pods.mu.Lock()
	for len(s.pods.watchers) == 0 {
		s.pods.changed.Wait()
	}
	s.pods.mu.Unlock()
	begin := time.Now()
	for i := range count {
		if rate > 0 {
			time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		}
		// A step that has no factor in common with the number of pods: no pod comes twice before all have come.
		s.pods.update(i*7919%len(s.pods.items), time.Now().UnixNano(), rate > 0)
		s.mu.Lock()
		s.sent++
		s.mu.Unlock()
	}
	s.pods.flush()
}

func (s *server) status() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]any{"asked": s.asked, "sent": s.sent, "writes": s.writes, "unknown": s.unknown}
	for _, kind := range s.kinds {
		kind.mu.Lock()
		out[kind.resource] = map[string]int{"watchers": len(kind.watchers), "whole": kind.whole, "items": len(kind.items)}
		kind.mu.Unlock()
	}
	return out
}

// acceptWrite takes any write, and forgets it: nothing that runs against this server should need one.
func (s *server) acceptWrite(out http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	s.writes++
	s.unknown[request.Method+" "+request.URL.Path]++
	s.mu.Unlock()
	http.Error(out, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, http.StatusForbidden)
}

func (s *server) notFound(out http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	s.unknown[request.Method+" "+request.URL.Path]++
	s.mu.Unlock()
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(http.StatusNotFound)
	fmt.Fprint(out, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
}

func reply(out http.ResponseWriter, value any) {
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(value)
}

// discovery is what clients ask before they begin.
var discovery = map[string]string{
	"/healthz": "ok", "/livez": "ok", "/readyz": "ok",
	"/version": `{"major":"1","minor":"37","gitVersion":"v1.37.1","platform":"linux/amd64"}`,
	"/api":     `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[]}`,
	"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],` +
		`"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`,
	"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,` +
		`"kind":"Pod","verbs":["create","delete","get","list","patch","update","watch"]}]}`,
	"/apis/apps/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"replicasets",` +
		`"singularName":"replicaset","namespaced":true,"kind":"ReplicaSet","verbs":["create","delete","get","list","patch","update","watch"]}]}`,
}
