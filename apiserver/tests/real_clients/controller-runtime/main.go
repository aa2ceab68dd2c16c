// Runs a small controller of controller-runtime: for each ConfigMap with the label "copy" it keeps a Secret with the
// same data. The argument is the path of a kubeconfig. The exit code is 0 if all checks pass; otherwise the program
// panics with the failed check. Nothing is configured: clients and caches of built-in kinds speak protobuf.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// timeout bounds every wait, with a margin for a busy machine.
const timeout = 60 * time.Second

const (
	namespace = "controller-runtime"
	copyLabel = "copy"
	owner     = client.FieldOwner("copier")
)

// copier copies ConfigMaps to Secrets.
type copier struct {
	client client.Client
}

func (c *copier) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	source := &corev1.ConfigMap{}
	if err := c.client.Get(ctx, request.NamespacedName, source); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if source.Labels[copyLabel] == "" || !source.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: source.Name, Namespace: source.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.client, secret, func() error {
		secret.Data = map[string][]byte{}
		for key, value := range source.Data {
			secret.Data[key] = []byte(value)
		}
		return controllerutil.SetControllerReference(source, secret, c.client.Scheme())
	})
	return ctrl.Result{}, err
}

func main() {
	ctrl.SetLogger(klog.Background())
	ctx, cancel := context.WithTimeout(context.Background(), 3*timeout)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err)
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	must(err)
	must(ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).
		Complete(&copier{client: manager.GetClient()}))
	stopped := make(chan error, 1)
	managerCtx, stop := context.WithCancel(ctx)
	go func() { stopped <- manager.Start(managerCtx) }()
	check(manager.GetCache().WaitForCacheSync(ctx), "the cache did not sync")

	direct, err := client.New(config, client.Options{})
	must(err)
	writes(ctx, direct)
	copies(ctx, direct, manager.GetClient())
	stop()
	must(<-stopped)
	fmt.Println("done")
}

// writes checks each kind of write of a client without a cache.
func writes(ctx context.Context, direct client.Client) {
	must(direct.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	plain := &corev1.ConfigMap{ObjectMeta: meta("plain"), Data: map[string]string{"n": "0"}}
	must(direct.Create(ctx, plain))
	check(plain.UID != "" && plain.ResourceVersion != "", "created: %v", plain)
	check(apierrors.IsAlreadyExists(direct.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta("plain")})), "created twice")
	old := plain.DeepCopy()
	plain.Data["n"] = "1"
	must(direct.Update(ctx, plain))
	old.Data["n"] = "2"
	check(apierrors.IsConflict(direct.Update(ctx, old)), "an old version was written")
	patched := plain.DeepCopy()
	patched.Labels = map[string]string{"a": "b"}
	must(direct.Patch(ctx, patched, client.MergeFromWithOptions(plain, client.MergeFromWithOptimisticLock{})))
	check(patched.Labels["a"] == "b" && patched.Data["n"] == "1", "patched: %v", patched)
	must(direct.Patch(ctx, patched, client.StrategicMergeFrom(patched.DeepCopy())))

	applied := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"n": "0"})
	must(direct.Apply(ctx, applied, owner))
	check(applied.ResourceVersion != nil, "applied: %v", applied)
	again := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"m": "1"})
	must(direct.Apply(ctx, again, owner))
	check(len(again.Data) == 1 && again.Data["m"] == "1", "applied again: %v", again.Data)
	other := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"m": "2"})
	check(apierrors.IsConflict(direct.Apply(ctx, other, client.FieldOwner("other"))), "a conflict was applied")

	maps := &corev1.ConfigMapList{}
	must(direct.List(ctx, maps, client.InNamespace(namespace), client.MatchingLabels{"a": "b"}))
	check(len(maps.Items) == 1 && maps.Items[0].Name == "plain", "listed: %v", maps.Items)
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	must(direct.Get(ctx, client.ObjectKeyFromObject(plain), partial))
	check(partial.Labels["a"] == "b" && partial.Kind == "ConfigMap", "metadata: %v", partial)
	must(direct.Delete(ctx, plain, client.Preconditions{UID: &plain.UID}))
	check(apierrors.IsNotFound(direct.Get(ctx, client.ObjectKeyFromObject(plain), plain)), "deleted, and there")
	must(direct.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(namespace)))
}

// copies checks the controller: it follows changes, repairs its Secrets, and its cache has them.
func copies(ctx context.Context, direct, cached client.Client) {
	source := &corev1.ConfigMap{ObjectMeta: meta("source"), Data: map[string]string{"k": "v"}}
	source.Labels = map[string]string{copyLabel: "yes"}
	must(direct.Create(ctx, source))
	has := func(want string) func() bool {
		return func() bool {
			secret := &corev1.Secret{}
			err := cached.Get(ctx, client.ObjectKeyFromObject(source), secret)
			return err == nil && string(secret.Data["k"]) == want && metav1.IsControlledBy(secret, source)
		}
	}
	eventually(ctx, "the secret is a copy", has("v"))
	source.Data["k"] = "w"
	must(direct.Update(ctx, source))
	eventually(ctx, "the secret is changed", has("w"))
	secret := &corev1.Secret{ObjectMeta: meta("source")}
	must(direct.Get(ctx, client.ObjectKeyFromObject(source), secret))
	uid := secret.UID
	must(direct.Delete(ctx, secret))
	eventually(ctx, "the secret is made again", func() bool {
		err := direct.Get(ctx, client.ObjectKeyFromObject(source), secret)
		return err == nil && secret.UID != uid
	})
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace}
}

func eventually(ctx context.Context, what string, condition func() bool) {
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, timeout, true,
		func(context.Context) (bool, error) { return condition(), nil })
	check(err == nil, "%s: not within %v", what, timeout)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(holds bool, what string, arguments ...any) {
	if !holds {
		panic(fmt.Sprintf(what, arguments...))
	}
}
