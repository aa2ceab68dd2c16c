package main

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// caches checks that informers follow the server across restarts and compactions.
func caches(s *fixture) {
	// Other namespaces have objects of the server.
	namespace := informers.WithNamespace(s.namespace)
	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0, namespace)
	maps := factory.Core().V1().ConfigMaps()
	pods := factory.Core().V1().Pods()
	seen := newMirror()
	_, err := maps.Informer().AddEventHandler(seen)
	must(err)
	pods.Informer()
	factory.Start(s.ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(s.ctx.Done()) {
		check(synced, "%v is not synced", kind)
	}

	const count = 50
	api := s.client.CoreV1().ConfigMaps(s.namespace)
	for n := range count {
		_, err := api.Create(s.ctx, configMap(fmt.Sprintf("m-%02d", n)), metav1.CreateOptions{})
		must(err)
	}
	s.eventually("the cache has the created objects", func() bool { return seen.len() == count })

	for round, disturb := range []string{"restart", "compact", "restart"} {
		s.disrupt(disturb)
		patch := fmt.Appendf(nil, `{"data": {"n": "%d"}}`, round)
		for n := range count - round {
			_, err := api.Patch(s.ctx, fmt.Sprintf("m-%02d", n), types.MergePatchType, patch, metav1.PatchOptions{})
			must(err)
		}
		gone := fmt.Sprintf("m-%02d", count-1-round)
		must(api.Delete(s.ctx, gone, metav1.DeleteOptions{}))
		_, err := api.Create(s.ctx, configMap("again-"+gone), metav1.CreateOptions{})
		must(err)
		s.eventually("the cache follows after "+disturb, func() bool {
			listed, err := maps.Lister().ConfigMaps(s.namespace).List(labels.Everything())
			must(err)
			current := len(listed) == count
			for _, object := range listed {
				old := object.Data["n"] != fmt.Sprint(round) && object.Name[:1] == "m"
				current = current && !old && object.Name != gone
			}
			return current && seen.len() == count
		})
	}
	seen.check()
	check(pods.Informer().HasSynced(), "the pods are not synced")
}

// mirror is the state of the objects according to the events of a handler.
type mirror struct {
	lock    sync.Mutex
	objects map[string]*corev1.ConfigMap
	wrong   []string
}

func newMirror() *mirror {
	return &mirror{objects: map[string]*corev1.ConfigMap{}}
}

func (s *mirror) len() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.objects)
}

func (s *mirror) check() {
	s.lock.Lock()
	defer s.lock.Unlock()
	check(len(s.wrong) == 0, "impossible events: %v", s.wrong)
}

func (s *mirror) expect(name string, known bool, event string) {
	if _, is := s.objects[name]; is != known {
		s.wrong = append(s.wrong, event+" "+name)
	}
}

func (s *mirror) OnAdd(object any, _ bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	added := object.(*corev1.ConfigMap)
	s.expect(added.Name, false, "added")
	s.objects[added.Name] = added
}

func (s *mirror) OnUpdate(_, object any) {
	s.lock.Lock()
	defer s.lock.Unlock()
	updated := object.(*corev1.ConfigMap)
	s.expect(updated.Name, true, "updated")
	s.objects[updated.Name] = updated
}

func (s *mirror) OnDelete(object any) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if tombstone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = tombstone.Obj
	}
	deleted := object.(*corev1.ConfigMap)
	s.expect(deleted.Name, true, "deleted")
	delete(s.objects, deleted.Name)
}
