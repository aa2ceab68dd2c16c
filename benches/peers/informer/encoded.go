package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"sort"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// Versions have eight digits, so that one can be written over another.
const (
	firstVersion   = 10_000_000
	versionPattern = "00000000"
)

// encoded is an object in both encodings, as the items of a list have it: without its type. What changes
// is overwritten in place.
type encoded struct {
	key      string
	version  int
	json     []byte
	proto    []byte
	metadata int // where the metadata ends in json
	// Where the version and the time of sending are, in both; no time if 0.
	jsonVersion, protoVersion, jsonSent, protoSent int
}

// object is what the types of Kubernetes can do.
type object interface {
	kruntime.Object
	metav1.Object
	Marshal() ([]byte, error)
}

var jsonSerializer = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})

// encode makes both encodings with the real serializers.
func encode(object object) (encoded, error) {
	object.SetResourceVersion(versionPattern)
	var buffer bytes.Buffer
	if err := jsonSerializer.Encode(object, &buffer); err != nil {
		return encoded{}, err
	}
	proto, err := object.Marshal()
	if err != nil {
		return encoded{}, err
	}
	text := bytes.Clone(bytes.TrimSuffix(buffer.Bytes(), []byte("\n")))
	out := encoded{key: object.GetNamespace() + "/" + object.GetName(), json: text, proto: proto}
	name := []byte(`"resourceVersion":"`)
	out.jsonVersion = bytes.Index(text, append(name, versionPattern...)) + len(name)
	// Field 6 of the metadata, eight bytes long.
	out.protoVersion = bytes.Index(proto, []byte("\x32\x08"+versionPattern)) + 2
	out.metadata = bytes.Index(text, []byte(`,"spec":`))
	if out.jsonVersion < len(name) || out.protoVersion < 2 || out.metadata < 0 || !bytes.HasPrefix(text, []byte(`{"metadata":`)) {
		return encoded{}, fmt.Errorf("%s: not encoded as expected", out.key)
	}
	if at := bytes.Index(text, []byte(notSent)); at > 0 {
		out.jsonSent, out.protoSent = at, bytes.Index(proto, []byte(notSent))
	}
	return out, nil
}

// setVersion writes the version into both encodings.
func (e *encoded) setVersion(version int) {
	e.version = version
	text := strconv.Itoa(version)
	copy(e.json[e.jsonVersion:], text)
	copy(e.proto[e.protoVersion:], text)
}

// setSent writes when this state is sent.
func (e *encoded) setSent(nanos int64) {
	if e.jsonSent > 0 {
		text := strconv.FormatInt(nanos, 10)
		copy(e.json[e.jsonSent:], text)
		copy(e.proto[e.protoSent:], text)
	}
}

// makePods makes and encodes all pods, sorted by key as the server has them.
func makePods(count int) ([]encoded, error) {
	out := make([]encoded, count)
	var group sync.WaitGroup
	errs := make([]error, runtime.GOMAXPROCS(0))
	for worker := range errs {
		group.Go(func() {
			for i := worker; i < count && errs[worker] == nil; i += len(errs) {
				pod := makePod(i/podsPerSet, i%podsPerSet)
				if errs[worker] = addManagedFields(pod); errs[worker] == nil {
					out[i], errs[worker] = encode(pod)
				}
			}
		})
	}
	group.Wait()
	return sorted(out), firstError(errs)
}

// makeSets makes and encodes the ReplicaSets that own the pods.
func makeSets(pods int) ([]encoded, error) {
	var out []encoded
	for set := 0; set*podsPerSet < pods; set++ {
		item, err := encode(makeSet(set, min(podsPerSet, pods-set*podsPerSet)))
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return sorted(out), nil
}

func sorted(items []encoded) []encoded {
	sort.Slice(items, func(a, b int) bool { return items[a].key < items[b].key })
	for i := range items {
		items[i].setVersion(firstVersion + i)
	}
	return items
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A format is what a client asked for.
type format int

const (
	inJSON format = iota
	inProto
	asMetadata // PartialObjectMetadata, in JSON
)

// frame appends an event of a watch.
func (k *kind) frame(out []byte, format format, event string, item *encoded) []byte {
	switch format {
	case inProto:
		return protoFrame(out, event, k.protoType, item.proto)
	case asMetadata:
		out = append(out, `{"type":"`+event+`","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",`...)
		out = append(out, item.json[1:item.metadata]...)
		return append(out, "}}\n"...)
	default:
		out = append(out, `{"type":"`+event+`","object":{"kind":"`+k.name+`","apiVersion":"`+k.apiVersion+`",`...)
		out = append(out, item.json[1:]...)
		return append(out, "}\n"...)
	}
}

// listItem appends an item of a list.
func (k *kind) listItem(out []byte, format format, item *encoded) []byte {
	switch format {
	case inProto:
		return field(out, 2, item.proto)
	case asMetadata:
		out = append(out, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",`...)
		out = append(out, item.json[1:item.metadata]...)
		return append(out, '}')
	default:
		return append(out, item.json...)
	}
}

// protoFrame appends a length, and then WatchEvent{type, RawExtension{"k8s\0" + Unknown{type, object}}}.
func protoFrame(out []byte, event string, typeMeta, raw []byte) []byte {
	const prefix = "k8s\x00"
	unknown := fieldSize(len(typeMeta)) + fieldSize(len(raw)) + 2*fieldSize(0)
	extension := fieldSize(len(prefix) + unknown)
	out = binary.BigEndian.AppendUint32(out, uint32(fieldSize(len(event))+fieldSize(extension)))
	out = field(out, 1, []byte(event))
	out = header(out, 2, extension)
	out = header(out, 1, len(prefix)+unknown)
	out = append(out, prefix...)
	return unknownMessage(out, typeMeta, raw)
}

func unknownMessage(out, typeMeta, raw []byte) []byte {
	out = field(out, 1, typeMeta)
	out = field(out, 2, raw)
	out = field(out, 3, nil) // no encoding
	return field(out, 4, nil)
}

// protoType is a TypeMeta.
func protoType(apiVersion, name string) []byte {
	return field(field(nil, 1, []byte(apiVersion)), 2, []byte(name))
}

func header(out []byte, number, length int) []byte {
	return binary.AppendUvarint(append(out, byte(number<<3|2)), uint64(length))
}

func field(out []byte, number int, value []byte) []byte {
	return append(header(out, number, len(value)), value...)
}

func fieldSize(length int) int {
	size := 2
	for rest := length >> 7; rest > 0; rest >>= 7 {
		size++
	}
	return size + length
}

// bookmark is the event that ends the initial state.
func (k *kind) bookmark(format format, version int) ([]byte, error) {
	metadata := metav1.ObjectMeta{
		ResourceVersion: strconv.Itoa(version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}
	empty, err := scheme.Scheme.New(k.version().WithKind(k.name))
	if err != nil {
		return nil, err
	}
	empty.(object).SetResourceVersion(metadata.ResourceVersion)
	empty.(object).SetAnnotations(metadata.Annotations)
	if format == inProto {
		raw, err := empty.(object).Marshal()
		return protoFrame(nil, "BOOKMARK", k.protoType, raw), err
	}
	if format == asMetadata {
		empty = &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}, ObjectMeta: metadata,
		}
	} else {
		empty.GetObjectKind().SetGroupVersionKind(k.version().WithKind(k.name))
	}
	var text bytes.Buffer
	text.WriteString(`{"type":"BOOKMARK","object":`)
	err = jsonSerializer.Encode(empty, &text)
	return append(bytes.TrimSuffix(text.Bytes(), []byte("\n")), "}\n"...), err
}

// expired is the event that says that a version is of no use any more.
func expired(format format) ([]byte, error) {
	status := errors.NewResourceExpired("too old resource version").Status()
	if format == inProto {
		raw, err := status.Marshal()
		return protoFrame(nil, "ERROR", protoType("v1", "Status"), raw), err
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	var text bytes.Buffer
	text.WriteString(`{"type":"ERROR","object":`)
	err := jsonSerializer.Encode(&status, &text)
	return append(bytes.TrimSuffix(text.Bytes(), []byte("\n")), "}\n"...), err
}
