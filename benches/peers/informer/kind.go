package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a collection and those who watch it.
type kind struct {
	path, resource, name, apiVersion string
	protoType                        []byte

	mu       sync.Mutex
	changed  *sync.Cond // a watcher came or went, or an update was sent
	items    []encoded
	revision int
	watchers map[*watcher]bool
	whole    int // how many watches have been sent the whole initial state
}

// watcher is a connection over which events go out, each in a chunk of its own.
type watcher struct {
	conn   net.Conn
	format format
	buffer []byte
	frame  []byte
}

// As much is written at once. The chunks are those of the real server: one for each event.
const flushAt = 256 << 10

func newKind(path, resource, name, apiVersion string, items []encoded) *kind {
	k := &kind{
		path: path, resource: resource, name: name, apiVersion: apiVersion, protoType: protoType(apiVersion, name),
		items: items, revision: firstVersion + len(items), watchers: map[*watcher]bool{},
	}
	k.changed = sync.NewCond(&k.mu)
	return k
}

func (k *kind) version() schema.GroupVersion {
	version, _ := schema.ParseGroupVersion(k.apiVersion)
	return version
}

// list writes a page: limit items from position start on; all if limit is 0.
func (k *kind) list(out io.Writer, format format, start, limit int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	end := len(k.items)
	if limit > 0 && start+limit < end {
		end = start + limit
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(k.revision)}
	if end < len(k.items) {
		rest := int64(len(k.items) - end)
		meta.Continue, meta.RemainingItemCount = fmt.Sprintf("from-%d", end), &rest
	}
	if format == inProto {
		return k.listProto(out, meta, k.items[start:end])
	}
	name, apiVersion := k.name+"List", k.apiVersion
	if format == asMetadata {
		name, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	page := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q`, name, apiVersion, meta.ResourceVersion)
	if meta.Continue != "" {
		page = fmt.Appendf(page, `,"continue":%q,"remainingItemCount":%d`, meta.Continue, *meta.RemainingItemCount)
	}
	page = append(page, `},"items":[`...)
	for i := range k.items[start:end] {
		if i > 0 {
			page = append(page, ',')
		}
		page = k.listItem(page, format, &k.items[start+i])
		if len(page) > flushAt {
			if _, err := out.Write(page); err != nil {
				return err
			}
			page = page[:0]
		}
	}
	_, err := out.Write(append(page, "]}\n"...))
	return err
}

func (k *kind) listProto(out io.Writer, meta metav1.ListMeta, items []encoded) error {
	raw, err := meta.Marshal()
	if err != nil {
		return err
	}
	list := field(nil, 1, raw)
	for i := range items {
		list = k.listItem(list, inProto, &items[i])
	}
	whole := append([]byte("k8s\x00"), unknownMessage(nil, protoType(k.apiVersion, k.name+"List"), list)...)
	_, err = out.Write(whole)
	return err
}

// watch sends the initial state if the request wants it, and then the events.
func (k *kind) watch(conn net.Conn, format format, initial bool) error {
	watcher := &watcher{conn: conn, format: format}
	content := "application/json"
	if format == inProto {
		content = "application/vnd.kubernetes.protobuf;stream=watch"
	}
	watcher.buffer = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n", content)
	k.mu.Lock()
	defer k.mu.Unlock()
	if initial {
		for i := range k.items {
			if err := watcher.send(k, "ADDED", &k.items[i]); err != nil {
				return err
			}
		}
		bookmark, err := k.bookmark(format, k.revision)
		if err != nil {
			return err
		}
		watcher.chunk(bookmark)
	}
	if err := watcher.flush(); err != nil {
		return err
	}
	k.whole++
	k.watchers[watcher] = true
	k.changed.Broadcast()
	go k.forgetWhenClosed(watcher)
	return nil
}

func (k *kind) forgetWhenClosed(watcher *watcher) {
	_, _ = io.Copy(io.Discard, watcher.conn)
	watcher.conn.Close()
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.watchers, watcher)
	k.changed.Broadcast()
}

// update sends a new state of an object to all watchers; at once, or when more has come together.
func (k *kind) update(at int, nanos int64, now bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	item := &k.items[at]
	k.revision++
	item.setVersion(k.revision)
	item.setSent(nanos)
	for watcher := range k.watchers {
		err := watcher.send(k, "MODIFIED", item)
		if err == nil && now {
			err = watcher.flush()
		}
		if err != nil {
			watcher.conn.Close()
		}
	}
}

// expire ends every watch as the server does when it has forgotten what came after its version. Before that
// it changes some objects, in percent, and sends no event.
func (k *kind) expire(changed int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.items {
		if i%100 < changed {
			k.revision++
			k.items[i].setVersion(k.revision)
		}
	}
	for watcher := range k.watchers {
		frame, err := expired(watcher.format)
		if err == nil {
			watcher.chunk(frame)
			watcher.buffer = append(watcher.buffer, "0\r\n\r\n"...)
			_ = watcher.flush()
		}
		watcher.conn.Close()
	}
}

func (k *kind) flush() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for watcher := range k.watchers {
		if watcher.flush() != nil {
			watcher.conn.Close()
		}
	}
}

func (w *watcher) send(k *kind, event string, item *encoded) error {
	w.frame = k.frame(w.frame[:0], w.format, event, item)
	w.chunk(w.frame)
	if len(w.buffer) < flushAt {
		return nil
	}
	return w.flush()
}

func (w *watcher) chunk(frame []byte) {
	w.buffer = strconv.AppendInt(w.buffer, int64(len(frame)), 16)
	w.buffer = append(w.buffer, "\r\n"...)
	w.buffer = append(w.buffer, frame...)
	w.buffer = append(w.buffer, "\r\n"...)
}

func (w *watcher) flush() error {
	_, err := io.Copy(w.conn, bytes.NewReader(w.buffer))
	w.buffer = w.buffer[:0]
	return err
}
