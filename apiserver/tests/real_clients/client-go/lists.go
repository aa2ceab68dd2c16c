package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/pager"
)

// lists checks lists in pages, at a version and with selectors, and the watches after them.
func lists(s *fixture) {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	for n := range 25 {
		object := configMap(fmt.Sprintf("m-%02d", n))
		object.Labels = map[string]string{"even": fmt.Sprint(n%2 == 0)}
		_, err := maps.Create(s.ctx, object, metav1.CreateOptions{})
		must(err)
	}
	pages := 0
	paged := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		pages++
		return maps.List(ctx, options)
	})
	paged.PageSize = 10
	var names []string
	must(paged.EachListItem(s.ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		names = append(names, object.(*corev1.ConfigMap).Name)
		return nil
	}))
	check(len(names) == 25 && pages == 3 && names[24] == "m-24", "pages: %d, names: %v", pages, names)
	even, err := maps.List(s.ctx, metav1.ListOptions{LabelSelector: "even in (true)", Limit: 5})
	must(err)
	check(len(even.Items) == 5 && even.Continue != "" && even.RemainingItemCount == nil, "even: %v", even.ListMeta)

	_, err = maps.List(s.ctx, metav1.ListOptions{ResourceVersion: "999999999"})
	check(apierrors.IsTimeout(err) && apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "too large: %v", err)
	_, err = maps.List(s.ctx, metav1.ListOptions{LabelSelector: "a in"})
	check(apierrors.IsBadRequest(err), "bad selector: %v", err)

	watches(s, even.ResourceVersion)

	s.disrupt("compact")
	_, err = maps.List(s.ctx, metav1.ListOptions{Limit: 5, Continue: even.Continue})
	check(apierrors.IsResourceExpired(err), "expired: %v", err)
	status, is := err.(apierrors.APIStatus)
	check(is && status.Status().ListMeta.Continue != "", "a fresh token comes with it: %v", err)
}

// watches checks the events of a watch with a selector and a resource version.
func watches(s *fixture, version string) {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	watcher, err := maps.Watch(s.ctx, metav1.ListOptions{LabelSelector: "even=true", ResourceVersion: version})
	must(err)
	defer watcher.Stop()
	object, err := maps.Get(s.ctx, "m-01", metav1.GetOptions{})
	must(err)
	for _, even := range []string{"true", "maybe", "false"} {
		object.Labels["even"] = even
		object, err = maps.Update(s.ctx, object, metav1.UpdateOptions{})
		must(err)
	}
	must(maps.Delete(s.ctx, "m-02", metav1.DeleteOptions{}))
	for _, expected := range []struct {
		event watch.EventType
		name  string
	}{{watch.Added, "m-01"}, {watch.Deleted, "m-01"}, {watch.Deleted, "m-02"}} {
		event := <-watcher.ResultChan()
		got := event.Object.(*corev1.ConfigMap).Name
		check(event.Type == expected.event && got == expected.name, "watched: %v %v", event.Type, got)
	}
}
