package main

// dropped has the members whose feature is off by default: the server decodes them and removes
// them before it stores the object.
var dropped = map[string]bool{
	"io.k8s.api.core.v1.ClusterTrustBundleProjection.user":                    true,
	"io.k8s.api.core.v1.ConfigMapVolumeSource.defaultUser":                    true,
	"io.k8s.api.core.v1.DownwardAPIVolumeFile.user":                           true,
	"io.k8s.api.core.v1.DownwardAPIVolumeSource.defaultUser":                  true,
	"io.k8s.api.core.v1.EmptyDirVolumeSource.mode":                            true,
	"io.k8s.api.core.v1.GRPCAction.mode":                                      true,
	"io.k8s.api.core.v1.HTTPGetAction.protocol":                               true,
	"io.k8s.api.core.v1.KeyToPath.user":                                       true,
	"io.k8s.api.core.v1.Lifecycle.stopSignal":                                 true,
	"io.k8s.api.core.v1.PodCertificateProjection.user":                        true,
	"io.k8s.api.core.v1.PodSpec.evictionResponders":                           true,
	"io.k8s.api.core.v1.PodSpec.schedulingGroup":                              true,
	"io.k8s.api.core.v1.ProjectedVolumeSource.defaultUser":                    true,
	"io.k8s.api.core.v1.SecretVolumeSource.defaultUser":                       true,
	"io.k8s.api.core.v1.ServiceAccountTokenProjection.user":                   true,
	"io.k8s.api.core.v1.VolumeMount.bindMountOptions":                         true,
	"io.k8s.api.resource.v1.Device.nodeAllocatableResources":                  true,
	"io.k8s.api.resource.v1.DeviceAttribute.bools":                            true,
	"io.k8s.api.resource.v1.DeviceAttribute.ints":                             true,
	"io.k8s.api.resource.v1.DeviceAttribute.strings":                          true,
	"io.k8s.api.resource.v1.DeviceAttribute.versions":                         true,
	"io.k8s.api.resource.v1.DeviceCounterConsumption.compatibilityGroups":     true,
	"io.k8s.api.resource.v1.DeviceRequestAllocationResult.skipNodeOperations": true,
	"io.k8s.api.resource.v1.DeviceSubRequest.derivedAttributes":               true,
	"io.k8s.api.resource.v1.ExactDeviceRequest.derivedAttributes":             true,
	"io.k8s.api.resource.v1.ResourceSliceSpec.partitionTypeAttribute":         true,
	"io.k8s.api.resource.v1.ResourceSliceSpec.skipNodeOperations":             true,
}
