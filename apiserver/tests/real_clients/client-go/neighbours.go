package main

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	metadataclient "k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// election checks leader election with two candidates: the second leads after the first releases the lease.
func election(s *fixture) {
	leads := make(chan string, 2)
	candidate := func(name string) context.CancelFunc {
		ctx, cancel := context.WithCancel(s.ctx)
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, s.namespace, "lock",
			s.client.CoreV1(), s.client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
		must(err)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true,
			LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- name },
				OnStoppedLeading: func() {},
			},
		})
		must(err)
		go elector.Run(ctx)
		return cancel
	}
	stepDown := candidate("one")
	check(<-leads == "one", "one leads")
	stop := candidate("two")
	defer stop()
	stepDown()
	check(<-leads == "two", "two leads")
	lease, err := s.client.CoordinationV1().Leases(s.namespace).Get(s.ctx, "lock", metav1.GetOptions{})
	must(err)
	check(*lease.Spec.HolderIdentity == "two" && *lease.Spec.LeaseTransitions >= 1, "lease: %v", lease.Spec)
}

// events checks that repeated events are counted in one object.
func events(s *fixture) {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	sink := &typedcorev1.EventSinkImpl{Interface: s.client.CoreV1().Events(s.namespace)}
	broadcaster.StartRecordingToSink(sink)
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "test"})
	object, err := s.client.CoreV1().ConfigMaps(s.namespace).Create(s.ctx, configMap("a"), metav1.CreateOptions{})
	must(err)
	for range 3 {
		recorder.Event(object, corev1.EventTypeNormal, "Tested", "it works")
	}
	s.eventually("the event is counted", func() bool {
		selector := "involvedObject.name=a,reason=Tested"
		events, err := s.client.CoreV1().Events(s.namespace).List(s.ctx, metav1.ListOptions{FieldSelector: selector})
		must(err)
		return len(events.Items) == 1 && events.Items[0].Count == 3
	})
}

// metadata checks the metadata client, the dynamic client and discovery.
func metadata(s *fixture) {
	_, err := s.client.AppsV1().ReplicaSets(s.namespace).Create(s.ctx, replicaSet("web"), metav1.CreateOptions{})
	must(err)
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	partial, err := metadataclient.NewForConfig(s.config)
	must(err)
	list, err := partial.Resource(resource).Namespace(s.namespace).List(s.ctx, metav1.ListOptions{})
	must(err)
	check(len(list.Items) == 1 && list.Items[0].Name == "web", "partial: %v", list.Items)
	untyped, err := dynamic.NewForConfig(s.config)
	must(err)
	object, err := untyped.Resource(resource).Namespace(s.namespace).Get(s.ctx, "web", metav1.GetOptions{})
	must(err)
	check(object.GetKind() == "ReplicaSet" && object.GetAPIVersion() == "apps/v1", "dynamic: %v", object.GetKind())

	lists, err := s.client.Discovery().ServerPreferredResources()
	must(err)
	verbs := map[string]int{}
	for _, list := range lists {
		for _, found := range list.APIResources {
			verbs[list.GroupVersion+" "+found.Kind] = len(found.Verbs)
		}
	}
	check(verbs["apps/v1 ReplicaSet"] == 8 && verbs["v1 Pod"] == 8, "discovery: %v", verbs)
	version, err := s.client.Discovery().ServerVersion()
	must(err)
	check(version.Minor == "37", "version: %v", version)
	openAPI(s)
}

// openAPI checks the OpenAPI v2 document, which the discovery client reads in protobuf.
func openAPI(s *fixture) {
	document, err := s.client.Discovery().OpenAPISchema()
	must(err)
	check(document.Swagger == "2.0" && len(document.Paths.Path) > 50, "paths: %d", len(document.Paths.Path))
	types := map[string]bool{}
	for _, named := range document.Definitions.AdditionalProperties {
		if named.Name != "io.k8s.api.core.v1.PodSpec" {
			continue
		}
		for _, property := range named.Value.Properties.AdditionalProperties {
			value := property.Value
			types[property.Name+" "+strings.Join(value.GetType().GetValue(), "")+value.XRef] = true
		}
	}
	for _, known := range []string{
		"containers array", "hostNetwork boolean", "nodeSelector object", "nodeName string",
		"affinity #/definitions/io.k8s.api.core.v1.Affinity",
	} {
		check(types[known], "%s is not among the types of a PodSpec: %v", known, types)
	}
}
