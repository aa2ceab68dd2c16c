package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// definition is the path of the definition of Foo, from the folder of the test.
const definition = "../controllers/sample/deploy/crd.yaml"

// foo is the Go type of the custom kind, with the members of the sample-controller's.
type foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		DeploymentName string `json:"deploymentName"`
		Replicas       *int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		AvailableReplicas int32 `json:"availableReplicas"`
	} `json:"status"`
}

type fooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []foo `json:"items"`
}

func (f *foo) DeepCopyObject() runtime.Object {
	copied := *f
	f.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	if f.Spec.Replicas != nil {
		replicas := *f.Spec.Replicas
		copied.Spec.Replicas = &replicas
	}
	return &copied
}

func (l *fooList) DeepCopyObject() runtime.Object {
	copied := fooList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for index := range l.Items {
		copied.Items = append(copied.Items, *l.Items[index].DeepCopyObject().(*foo))
	}
	return &copied
}

// foos checks an informer of a custom kind, with a typed client as the code generators write it: it starts before the
// definition is installed, follows the objects, and resumes after the definition was deleted and installed again.
func foos(s *fixture) {
	client := fooClient(s)
	informer := cache.NewSharedIndexInformer(
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return client.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return client.Watch(ctx, options)
			},
		}, client), &foo{}, time.Second, cache.Indexers{"deployment": func(object any) ([]string, error) {
			return []string{object.(*foo).Spec.DeploymentName}, nil
		}})
	resyncs := countResyncs(informer)
	go informer.RunWithContext(s.ctx)
	check(!informer.HasSynced(), "the informer is synced without a definition")
	installFoos(s)
	s.eventually("the informer is synced", informer.HasSynced)

	followsFoos(s, client, informer)
	s.eventually("a resync delivers unchanged objects", func() bool { return resyncs.Load() > 0 })

	deleteFoos(s)
	installFoos(s)
	createFoo(s, client, 7)
	s.eventually("the informer resumes with the new definition", func() bool {
		keys := informer.GetStore().ListKeys()
		return len(keys) == 1 && keys[0] == s.namespace+"/foo-07"
	})
}

// followsFoos checks that the cache and its index show what the client writes.
func followsFoos(s *fixture, client *gentype.ClientWithList[*foo, *fooList], informer cache.SharedIndexInformer) {
	const count = 20
	for n := range count {
		createFoo(s, client, n)
	}
	s.eventually("the cache has the created objects", func() bool {
		return len(informer.GetStore().ListKeys()) == count
	})
	found, err := informer.GetIndexer().ByIndex("deployment", "nginx-03")
	must(err)
	check(len(found) == 1 && found[0].(*foo).Name == "foo-03", "the index of nginx-03: %v", found)

	changed := found[0].(*foo).DeepCopyObject().(*foo)
	changed.Status.AvailableReplicas = 2
	*changed.Spec.Replicas = 9
	changed, err = client.UpdateStatus(s.ctx, changed, metav1.UpdateOptions{})
	must(err)
	check(changed.Status.AvailableReplicas == 2 && *changed.Spec.Replicas == 2, "the status alone: %v", changed)
	patch := []byte(`{"spec": {"deploymentName": "other"}}`)
	changed, err = client.Patch(s.ctx, "foo-03", types.MergePatchType, patch, metav1.PatchOptions{})
	must(err)
	must(client.Delete(s.ctx, "foo-04", metav1.DeleteOptions{}))
	s.eventually("the cache has the changes", func() bool {
		moved, err := informer.GetIndexer().ByIndex("deployment", "other")
		must(err)
		left, err := informer.GetIndexer().ByIndex("deployment", "nginx-03")
		must(err)
		current := len(moved) == 1 && moved[0].(*foo).ResourceVersion == changed.ResourceVersion
		return current && len(left) == 0 && len(informer.GetStore().ListKeys()) == count-1
	})

	// A number beyond the schema is refused, and changes nothing.
	_, err = client.Patch(s.ctx, "foo-03", types.MergePatchType, []byte(`{"spec": {"replicas": 11}}`), metav1.PatchOptions{})
	check(apierrors.IsInvalid(err), "11 replicas: %v", err)
}

func createFoo(s *fixture, client *gentype.ClientWithList[*foo, *fooList], n int) {
	created := &foo{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("foo-%02d", n), Namespace: s.namespace}}
	replicas := int32(2)
	created.Spec.DeploymentName, created.Spec.Replicas = fmt.Sprintf("nginx-%02d", n), &replicas
	_, err := client.Create(s.ctx, created, metav1.CreateOptions{})
	must(err)
}

// countResyncs counts the updates that change nothing.
func countResyncs(informer cache.SharedIndexInformer) *atomic.Int64 {
	var resyncs atomic.Int64
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, updated any) {
		if old.(*foo).ResourceVersion == updated.(*foo).ResourceVersion {
			resyncs.Add(1)
		}
	}})
	must(err)
	return &resyncs
}

// fooClient returns a client as the one that client-gen writes.
func fooClient(s *fixture) *gentype.ClientWithList[*foo, *fooList] {
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: "samplecontroller.k8s.io", Version: "v1alpha1"}
	scheme.AddKnownTypeWithName(version.WithKind("Foo"), &foo{})
	scheme.AddKnownTypeWithName(version.WithKind("FooList"), &fooList{})
	metav1.AddToGroupVersion(scheme, version)
	config := rest.CopyConfig(s.config)
	config.APIPath, config.GroupVersion = "/apis", &version
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	must(err)
	return gentype.NewClientWithList("foos", client, runtime.NewParameterCodec(scheme), s.namespace,
		func() *foo { return &foo{} }, func() *fooList { return &fooList{} })
}

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

const definitionName = "foos.samplecontroller.k8s.io"

// installFoos applies the definition, and waits until its kind is served.
func installFoos(s *fixture) {
	manifest, err := os.ReadFile(definition)
	must(err)
	client, err := dynamic.NewForConfig(s.config)
	must(err)
	force := true
	options := metav1.PatchOptions{FieldManager: "test", Force: &force}
	_, err = client.Resource(definitions).Patch(s.ctx, definitionName, types.ApplyYAMLPatchType, manifest, options)
	must(err)
	s.eventually("the kind is served", func() bool {
		installed, err := client.Resource(definitions).Get(s.ctx, definitionName, metav1.GetOptions{})
		must(err)
		_, err = fooClient(s).List(s.ctx, metav1.ListOptions{})
		return isEstablished(installed) && err == nil
	})
}

// isEstablished returns true if the server has accepted the definition. A kind of the same name that was deleted just
// before may be served until then.
func isEstablished(installed *unstructured.Unstructured) bool {
	// A new definition has null instead of conditions.
	conditions, _, _ := unstructured.NestedSlice(installed.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		members := condition.(map[string]any)
		return members["type"] == "Established" && members["status"] == "True"
	})
}

// deleteFoos deletes the definition, and waits until it is gone.
func deleteFoos(s *fixture) {
	client, err := dynamic.NewForConfig(s.config)
	must(err)
	must(client.Resource(definitions).Delete(s.ctx, definitionName, metav1.DeleteOptions{}))
	s.eventually("the definition is gone", func() bool {
		_, err := client.Resource(definitions).Get(s.ctx, definitionName, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
