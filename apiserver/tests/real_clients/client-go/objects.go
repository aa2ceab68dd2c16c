package main

import (
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

func (s *fixture) createNamespace() {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	_, err := s.client.CoreV1().Namespaces().Create(s.ctx, namespace, metav1.CreateOptions{})
	must(err)
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": "0"}}
}

func replicaSet(name string) *appsv1.ReplicaSet {
	labels := map[string]string{"app": name}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](2),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
}

// objects checks reads and writes of single objects, with the error predicates of controllers.
func objects(s *fixture) {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	_, err := maps.Get(s.ctx, "a", metav1.GetOptions{})
	check(apierrors.IsNotFound(err), "not found: %v", err)
	made, err := maps.Create(s.ctx, configMap("a"), metav1.CreateOptions{})
	must(err)
	check(made.UID != "" && made.ResourceVersion != "" && !made.CreationTimestamp.IsZero(), "made: %v", made)
	_, err = maps.Create(s.ctx, configMap("a"), metav1.CreateOptions{})
	check(apierrors.IsAlreadyExists(err), "already exists: %v", err)
	_, err = maps.Create(s.ctx, configMap("No_Name"), metav1.CreateOptions{})
	check(apierrors.IsInvalid(err), "invalid: %v", err)
	_, err = maps.Create(s.ctx, configMap("b"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	must(err)
	_, err = maps.Get(s.ctx, "b", metav1.GetOptions{})
	check(apierrors.IsNotFound(err), "a dry run stored an object: %v", err)

	conflicts(s, made)
	patches(s)
	replicaSets(s)

	generated := configMap("")
	generated.GenerateName = "g-"
	made, err = maps.Create(s.ctx, generated, metav1.CreateOptions{})
	must(err)
	check(strings.HasPrefix(made.Name, "g-") && len(made.Name) == 7, "generated: %q", made.Name)
	other := types.UID("another")
	err = maps.Delete(s.ctx, made.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	check(apierrors.IsConflict(err), "precondition: %v", err)
	must(maps.DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name!=a"}))
	left, err := maps.List(s.ctx, metav1.ListOptions{})
	must(err)
	check(len(left.Items) == 1 && left.Items[0].Name == "a", "left: %v", left.Items)
}

// conflicts checks concurrent updates of one object.
func conflicts(s *fixture, made *corev1.ConfigMap) {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	made.Data["n"] = "1"
	_, err := maps.Update(s.ctx, made, metav1.UpdateOptions{})
	must(err)
	_, err = maps.Update(s.ctx, made, metav1.UpdateOptions{})
	check(apierrors.IsConflict(err), "conflict: %v", err)
	const writers = 8
	var wait sync.WaitGroup
	for range writers {
		wait.Go(func() {
			// Each writer fails at most once per other writer.
			backoff := retry.DefaultRetry
			backoff.Steps = 10 * writers
			must(retry.RetryOnConflict(backoff, func() error {
				now, err := maps.Get(s.ctx, "a", metav1.GetOptions{})
				if err != nil {
					return err
				}
				now.Data["n"] += "+"
				_, err = maps.Update(s.ctx, now, metav1.UpdateOptions{})
				return err
			}))
		})
	}
	wait.Wait()
	now, err := maps.Get(s.ctx, "a", metav1.GetOptions{})
	must(err)
	check(now.Data["n"] == "1"+strings.Repeat("+", writers), "a write is lost: %q", now.Data["n"])
}

func patches(s *fixture) {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	for patch, body := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op": "add", "path": "/data/json", "value": "1"}]`,
		types.MergePatchType:          `{"data": {"merge": "1"}}`,
		types.StrategicMergePatchType: `{"data": {"strategic": "1"}}`,
	} {
		_, err := maps.Patch(s.ctx, "a", patch, []byte(body), metav1.PatchOptions{})
		must(err)
	}
	now, err := maps.Get(s.ctx, "a", metav1.GetOptions{})
	must(err)
	check(len(now.Data) == 4, "patched: %v", now.Data)
	_, err = maps.Patch(s.ctx, "a", types.JSONPatchType, []byte(`[{"op": "test", "path": "/data/n", "value": "x"}]`), metav1.PatchOptions{})
	check(apierrors.IsInvalid(err), "a test that fails: %v", err)
}

func replicaSets(s *fixture) {
	sets := s.client.AppsV1().ReplicaSets(s.namespace)
	made, err := sets.Create(s.ctx, replicaSet("web"), metav1.CreateOptions{})
	must(err)
	check(made.Generation == 1 && made.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyAlways, "defaults: %v", made)
	made.Status = appsv1.ReplicaSetStatus{Replicas: 1, ObservedGeneration: 1}
	made.Spec.Replicas = ptr.To[int32](99)
	made, err = sets.UpdateStatus(s.ctx, made, metav1.UpdateOptions{})
	must(err)
	check(made.Status.Replicas == 1 && *made.Spec.Replicas == 2 && made.Generation == 1, "status only: %v", made)

	scale, err := sets.GetScale(s.ctx, "web", metav1.GetOptions{})
	must(err)
	check(scale.Spec.Replicas == 2 && scale.Status.Replicas == 1 && scale.Status.Selector == "app=web", "scale: %v", scale)
	scale.Spec.Replicas = 5
	_, err = sets.UpdateScale(s.ctx, "web", scale, metav1.UpdateOptions{})
	must(err)
	made, err = sets.Get(s.ctx, "web", metav1.GetOptions{})
	must(err)
	check(*made.Spec.Replicas == 5 && made.Generation == 2, "scaled: %v", made)

	wrong := replicaSet("wrong")
	wrong.Spec.Template.Labels = map[string]string{"app": "other"}
	_, err = sets.Create(s.ctx, wrong, metav1.CreateOptions{})
	check(apierrors.IsInvalid(err) && strings.Contains(err.Error(), "`selector` does not match template `labels`"), "invalid: %v", err)
}
