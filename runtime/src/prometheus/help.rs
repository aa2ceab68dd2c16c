//! The help texts of the metrics of homeostat's crates: `# HELP` of Prometheus' text format.
//!
//! A scraper shows them beside the metric. A [`ConsistencyStore`](crate::ConsistencyStore)
//! describes its own metrics: their names begin with that of the controller.

/// Names and texts, sorted by name.
pub(super) const HELP: [(&str, &str); 42] = [
    ("controller_expectations_expired_total", "Number of expectations that expired"),
    ("controller_runtime_active_workers", "Number of workers that reconcile, by controller"),
    (
        "controller_runtime_max_concurrent_reconciles",
        "Maximum number of concurrent reconciles, by controller",
    ),
    (
        "controller_runtime_reconcile_errors_total",
        "Number of reconciles that failed, by controller",
    ),
    (
        "controller_runtime_reconcile_panics_total",
        "Number of reconciles that panicked, by controller",
    ),
    ("controller_runtime_reconcile_time_seconds", "Length of a reconcile, by controller"),
    ("controller_runtime_reconcile_total", "Number of reconciles, by controller and result"),
    (
        "controller_runtime_terminal_reconcile_errors_total",
        "Number of reconciles that failed and are not retried before a change, by controller",
    ),
    ("homeostat_events_total", "Number of events, by component and result"),
    ("homeostat_user_code_panics_total", "Number of panics of an author's code, by part"),
    ("informer_handler_duration_seconds", "Length of a call of a handler, by handler"),
    ("informer_handler_panics_total", "Number of panics of a handler, by handler"),
    ("informer_handler_queued_items", "Number of events that wait for a handler, by handler"),
    ("informer_index_panics_total", "Number of panics of index functions"),
    ("informer_opaque_objects", "Number of cached objects that do not decode into their type"),
    ("informer_processing_latency_seconds", "Time from an event to its place in the cache"),
    ("informer_queued_items", "Number of events that wait for the cache"),
    ("informer_skipped_nameless_objects_total", "Number of objects without a name"),
    ("informer_store_resource_version", "Resource version that the cache has reached"),
    ("leader_election_master_status", "1 if this process leads, 0 if it does not, by lease name"),
    ("leader_election_slowpath_total", "Number of lease reads before a write, by lease name"),
    ("reflector_errors_total", "Number of failed lists and watches"),
    ("reflector_items_per_list", "Number of objects that a list returned"),
    ("reflector_items_per_watch", "Number of events that a watch delivered"),
    ("reflector_list_duration_seconds", "Time from the request of a list to its last object"),
    ("reflector_lists_total", "Number of lists"),
    ("reflector_short_watches_total", "Number of watches that ended at once without an event"),
    ("reflector_watch_duration_seconds", "Time for which a watch was open"),
    ("reflector_watches_total", "Number of watches"),
    (
        "rest_client_rate_limiter_duration_seconds",
        "Client side rate limiter latency in seconds, by verb and host",
    ),
    ("rest_client_request_duration_seconds", "Request latency in seconds, by verb and host"),
    ("rest_client_request_retries_total", "Number of request retries, by status code, verb, host"),
    ("rest_client_request_size_bytes", "Request size in bytes, by verb and host"),
    ("rest_client_requests_total", "Number of HTTP requests, by status code, method and host"),
    ("rest_client_response_size_bytes", "Response size in bytes, by verb and host"),
    ("workqueue_adds_total", "Total number of adds handled by workqueue"),
    ("workqueue_depth", "Current depth of workqueue"),
    (
        "workqueue_longest_running_processor_seconds",
        "Time in seconds for which the longest running processor for workqueue has been running",
    ),
    (
        "workqueue_queue_duration_seconds",
        "Time in seconds that an item stays in workqueue before it is requested",
    ),
    ("workqueue_retries_total", "Total number of retries handled by workqueue"),
    (
        "workqueue_unfinished_work_seconds",
        "Seconds of work in progress that work_duration has not observed yet; a value that grows \
         by n per second shows n stuck workers",
    ),
    (
        "workqueue_work_duration_seconds",
        "Time in seconds that processing an item from workqueue takes",
    ),
];
