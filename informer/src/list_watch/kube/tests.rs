//! [`KubeListWatch`] against an in-process server: the requests it sends and how it handles each
//! kind of answer.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{Full, StreamBody};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;

use super::failure::retry_after;
use super::*;
use crate::list_watch::{Decoded, WatchEvent};

type Seen = Arc<Mutex<Vec<Request<()>>>>;
type Chunks = Vec<Result<&'static [u8], &'static str>>;

const ONE: &[u8] = br#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}}}
"#;
const TWO: &[u8] = br#"{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"2"}}}
"#;

fn client(
    status: u16,
    headers: &'static [(&str, &str)],
    chunks: Chunks,
) -> (kube_client::Client, Seen) {
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let service = tower::service_fn(move |request: Request<Body>| {
        log.lock().push(request.map(|_| ()));
        let frames: Vec<_> = chunks
            .iter()
            .map(|chunk| match chunk {
                Ok(bytes) => Ok(http_body::Frame::data(Bytes::from_static(bytes))),
                Err(error) => Err(std::io::Error::other(*error)),
            })
            .collect();
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let body = StreamBody::new(futures::stream::iter(frames));
        let response = response.body(body).unwrap();
        async move { Ok::<_, Infallible>(response) }
    });
    (kube_client::Client::new(service, "default"), seen)
}

fn uri(seen: &Seen) -> String {
    seen.lock()[0].uri().to_string()
}

async fn batches(chunks: Chunks) -> (Vec<usize>, Option<WatchError>) {
    let (client, _) = client(200, &[], chunks);
    let pods = KubeListWatch::<Pod>::new(client, None).max_frame(1000);
    let request = WatchRequest::after("1".into(), Duration::from_secs(300));
    let mut stream = pods.watch(&request).await.unwrap();
    let mut sizes = Vec::new();
    while let Some(batch) = stream.next().await {
        match batch {
            Ok(batch) => sizes.push(batch.len()),
            Err(error) => {
                assert!(stream.next().await.is_none(), "nothing comes after an error");
                return (sizes, Some(error));
            }
        }
    }
    (sizes, None)
}

#[tokio::test]
async fn watch_request_sends_version_bookmarks_and_identity_encoding() {
    let (client, seen) = client(200, &[], vec![]);
    let sets = KubeListWatch::<ReplicaSet>::new(client, Some("shop")).label_selector("a=b,c!=d e");
    assert_eq!(&*sets.target(), "replicasets.apps in namespace shop");
    let _stream =
        sets.watch(&WatchRequest::after("7".into(), Duration::from_secs(300))).await.unwrap();
    assert_eq!(
        uri(&seen),
        "/apis/apps/v1/namespaces/shop/replicasets?labelSelector=a%3Db%2Cc%21%3Dd%20e&watch=true\
         &allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=7"
    );
    let request = &seen.lock()[0];
    assert_eq!(request.headers()[header::ACCEPT_ENCODING], "identity");
    assert_eq!(request.headers()[header::ACCEPT], "application/json");
}

#[tokio::test]
async fn watch_with_initial_events_requests_the_newest_by_default() {
    for (version, end) in [(None, ""), (Some("7".into()), "&resourceVersion=7")] {
        let (client, seen) = client(200, &[], vec![]);
        let pods = KubeListWatch::<Pod>::new(client, None);
        let request = WatchRequest::with_initial_events(version, Duration::from_secs(1));
        let _stream = pods.watch(&request).await.unwrap();
        let expected = format!(
            "/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=1\
             &sendInitialEvents=true&resourceVersionMatch=NotOlderThan{end}"
        );
        assert_eq!(uri(&seen), expected);
    }
}

#[tokio::test]
async fn timeout_of_a_watch_is_one_that_the_server_can_represent() {
    let (client, seen) = client(200, &[], vec![]);
    let pods = KubeListWatch::<Pod>::new(client, None);
    let _stream = pods.watch(&WatchRequest::after("7".into(), Duration::MAX)).await.unwrap();
    let query = uri(&seen);
    let timeout = query.split('&').find_map(|pair| pair.strip_prefix("timeoutSeconds="));
    let seconds: i64 = timeout.unwrap().parse().expect("the server reads an int64");
    assert!(seconds.checked_mul(1_000_000_000).is_some(), "{seconds} s overflow a Go duration");
}

#[tokio::test]
async fn list_request_never_combines_continue_token_and_version() {
    let list = br#"{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}}]}"#;
    let ask = async |request: ListRequest| {
        let (client, seen) = client(200, &[], vec![Ok(&list[..20]), Ok(&list[20..])]);
        let page = KubeListWatch::<Pod>::new(client, None).list(&request).await.unwrap();
        assert_eq!((page.items.len(), page.resource_version.as_str()), (1, "9"));
        uri(&seen)
    };
    assert_eq!(ask(ListRequest::new()).await, "/api/v1/pods?");
    let mut request = ListRequest::new();
    request.limit = Some(500);
    request.resource_version = Some("7".into());
    assert_eq!(
        ask(request.clone()).await,
        "/api/v1/pods?limit=500&resourceVersion=7&resourceVersionMatch=NotOlderThan"
    );
    request.continue_token = Some("a&b=c".into());
    assert_eq!(ask(request).await, "/api/v1/pods?limit=500&continue=a%26b%3Dc");
}

#[tokio::test]
async fn events_in_one_read_are_one_batch() {
    assert_eq!(batches(vec![Ok(ONE), Ok(TWO)]).await.0, [2]);
}

#[tokio::test]
async fn frames_before_an_error_are_delivered_first() {
    let corrupt: [&[u8]; 6] = [
        b"{\"type\":\"ADD\n",
        b"\n",
        b"\xff\n",
        b"<html>\n",
        br#"{"type":"INVENTED","object":{"metadata":{"name":"a"}}}
"#,
        &[b' '; 1001],
    ];
    for bad in corrupt {
        let (sizes, error) = batches(vec![Ok(ONE), Ok(bad), Ok(TWO)]).await;
        assert_eq!(sizes, [1]);
        assert!(matches!(error, Some(WatchError::Corrupt { .. })), "{error:?}");
    }
    let (sizes, error) = batches(vec![Ok(ONE), Ok(&TWO[..9])]).await;
    assert_eq!(sizes, [1]);
    assert!(matches!(error, Some(WatchError::Torn { .. })), "{error:?}");
    let (sizes, error) = batches(vec![Ok(ONE), Err("reset")]).await;
    assert_eq!(sizes, [1]);
    assert!(error.unwrap().to_string().contains("watch of pods broke off"));
    let gone = br#"{"type":"ERROR","object":{"code":410,"reason":"Expired"}}
"#;
    let (sizes, error) = batches(vec![Ok(ONE), Ok(gone), Ok(TWO)]).await;
    assert!(sizes == [1] && error.unwrap().is_expired());
    assert!(matches!(batches(vec![Ok(ONE)]).await, (_, None)), "a regular end is not an error");
}

#[tokio::test]
async fn undecodable_object_is_opaque_and_the_watch_continues() {
    let misfit = br#"{"type":"ADDED","object":{"metadata":{"name":"m"},"spec":7}}
"#;
    let (client, _) = client(200, &[], vec![Ok(misfit), Ok(ONE)]);
    let pods = KubeListWatch::<Pod>::new(client, None);
    let request = WatchRequest::after("1".into(), Duration::from_secs(300));
    let batch = pods.watch(&request).await.unwrap().next().await.unwrap().unwrap();
    assert!(matches!(batch[0], WatchEvent::Applied(Decoded::Opaque { .. })));
    assert!(matches!(batch[1], WatchEvent::Applied(Decoded::Fits(_))));
}

#[tokio::test]
async fn refused_request_error_has_message_and_retry_after() {
    let status =
        br#"{"kind":"Status","code":403,"reason":"Forbidden","message":"pods is forbidden"}"#;
    let (client, _) = client(403, &[("retry-after", "7")], vec![Ok(status)]);
    let pods = KubeListWatch::<Pod>::new(client, Some("x"));
    let error = pods.list(&ListRequest::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot list pods in namespace x: forbidden: pods is forbidden");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    let request = WatchRequest::after("1".into(), Duration::from_secs(300));
    let Err(error) = pods.watch(&request).await else { panic!("the watch was opened") };
    assert_eq!(error.to_string(), "cannot watch pods in namespace x: forbidden: pods is forbidden");
}

#[test]
fn retry_after_is_seconds_or_date_by_server_clock() {
    let wait = |after: &str, date: &str| {
        let headers = [(header::RETRY_AFTER, after), (header::DATE, date)];
        let headers = headers.map(|(name, value)| (name, value.parse().unwrap()));
        retry_after(&headers.into_iter().collect()).map(|wait| wait.as_secs())
    };
    assert_eq!(wait(" 7 ", ""), Some(7));
    let later = "Sun, 06 Nov 1994 08:50:37 GMT";
    assert_eq!(wait(later, "Sun, 06 Nov 1994 08:49:37 GMT"), Some(60));
    assert_eq!(wait(later, "Sun, 06 Nov 1994 08:51:37 GMT"), None, "the date has passed");
    for odd in ["", "soon", "-1", "Sun, 99 Nov 1994 08:49:37 GMT"] {
        assert_eq!((wait(odd, later), wait(later, odd)), (None, None), "{odd}");
    }
}

#[tokio::test]
async fn html_answer_of_proxy_is_refused_or_corrupt() {
    let (bad_gateway, _) = client(502, &[], vec![Ok(b"<html>")]);
    let error = KubeListWatch::<Pod>::new(bad_gateway, None).list(&ListRequest::new()).await;
    assert_eq!(error.unwrap_err().to_string(), "cannot list pods: status 502");
    let (html, _) = client(200, &[], vec![Ok(b"<html>")]);
    let error = KubeListWatch::<Pod>::new(html, None).list(&ListRequest::new()).await;
    assert!(matches!(error, Err(ListError::Corrupt { .. })), "{error:?}");
}

#[tokio::test]
async fn connection_error_is_unreachable() {
    let service = tower::service_fn(|_: Request<Body>| async {
        Err::<Response<Full<Bytes>>, _>(std::io::Error::other("connection refused"))
    });
    let client = kube_client::Client::new(service, "default");
    let error = KubeListWatch::<Pod>::new(client, None).list(&ListRequest::new()).await;
    let text = error.unwrap_err().to_string();
    assert_eq!(text, "cannot list pods: connection refused");
}

/// Returns the client of a server that sends a list of `pods` pods in chunks of 1000 bytes, and the
/// number of chunks that are still to come.
fn long_list(pods: usize) -> (kube_client::Client, Arc<Mutex<usize>>) {
    let item = |at: usize| {
        let metadata = format!(r#""name":"p{at}","annotations":{{"a":"{}"}}"#, "x".repeat(3000));
        format!(r#"{{"metadata":{{{metadata}}},"spec":{{"containers":[]}}}}"#)
    };
    let items = (0..pods).map(item).collect::<Vec<_>>().join(",");
    let body = format!(r#"{{"metadata":{{"resourceVersion":"9"}},"items":[{items}]}}"#);
    let chunks: Vec<_> = body.as_bytes().chunks(1000).map(Bytes::copy_from_slice).collect();
    let left = Arc::new(Mutex::new(chunks.len()));
    let count = Arc::clone(&left);
    let service = tower::service_fn(move |_: Request<Body>| {
        let (chunks, count) = (chunks.clone(), Arc::clone(&count));
        let frames = chunks.into_iter().map(move |chunk| {
            *count.lock() -= 1;
            Ok::<_, Infallible>(http_body::Frame::data(chunk))
        });
        let body = StreamBody::new(futures::stream::iter(frames));
        async move { Ok::<_, Infallible>(Response::new(body)) }
    });
    (kube_client::Client::new(service, "default"), left)
}

#[tokio::test]
async fn long_list_is_decoded_while_it_arrives_and_lets_other_tasks_run() {
    let (client, left) = long_list(1000);
    let pods = KubeListWatch::<Pod>::new(client, None);
    let turns = Arc::new(Mutex::new(Vec::new()));
    let (log, chunks_left) = (Arc::clone(&turns), Arc::clone(&left));
    let other = async move {
        loop {
            log.lock().push(*chunks_left.lock());
            tokio::task::yield_now().await;
        }
    };
    let request = ListRequest::new();
    let page = tokio::select! {
        page = pods.list(&request) => page.unwrap(),
        () = other => unreachable!("the other task never ends"),
    };
    assert_eq!(page.items.len(), 1000);
    let during = turns.lock().iter().filter(|left| (1..3000).contains(*left)).count();
    assert!(during >= 20, "{during} turns of another task while 3 MB were decoded");
}

#[tokio::test]
async fn object_of_a_list_has_a_limit_and_the_list_has_none() {
    let pods = KubeListWatch::<Pod>::new(long_list(200).0, None).max_frame(4000);
    assert_eq!(pods.list(&ListRequest::new()).await.unwrap().items.len(), 200);
    let pods = KubeListWatch::<Pod>::new(long_list(200).0, None).max_frame(2000);
    let error = pods.list(&ListRequest::new()).await.unwrap_err().to_string();
    assert_eq!(error, "cannot list pods: the answer is no list: an object exceeds 2000 bytes");
}

#[tokio::test]
async fn list_that_breaks_off_or_ends_early_is_an_error() {
    let begin = br#"{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}}"#;
    let (torn, _) = client(200, &[], vec![Ok(begin), Err("reset")]);
    let error = KubeListWatch::<Pod>::new(torn, None).list(&ListRequest::new()).await;
    assert!(matches!(error, Err(ListError::Unreachable { .. })), "{error:?}");
    let (short, _) = client(200, &[], vec![Ok(begin)]);
    let error = KubeListWatch::<Pod>::new(short, None).list(&ListRequest::new()).await;
    let text = error.unwrap_err().to_string();
    assert_eq!(text, "cannot list pods: the answer is no list: it is incomplete");
}

#[tokio::test]
async fn expired_list_offers_its_token_and_long_texts_are_cut() {
    let status = br#"{"kind":"Status","code":410,"reason":"Expired",
        "metadata":{"continue":"later"},"message":"too old"}"#;
    let (expired, _) = client(410, &[], vec![Ok(status)]);
    let error = KubeListWatch::<Pod>::new(expired, None).list(&ListRequest::new()).await;
    let error = error.unwrap_err();
    assert_eq!(error.api_error().unwrap().continue_token(), Some("later"));

    let text = "ü".repeat(1_000_000);
    let status = format!(r#"{{"code":500,"message":"{text}","reason":"a{text}"}}"#);
    let event = format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n");
    let (ended, _) = client(200, &[], vec![Ok(event.leak().as_bytes())]);
    let pods = KubeListWatch::<Pod>::new(ended, None);
    let request = WatchRequest::after("1".into(), Duration::from_secs(300));
    let error = pods.watch(&request).await.unwrap().next().await.unwrap().unwrap_err();
    assert!(error.to_string().len() < 10_000, "{} bytes", error.to_string().len());
}

#[tokio::test]
async fn pruned_members_are_absent_and_identity_stays() {
    let (client, _) = client(200, &[], vec![]);
    let pods = || KubeListWatch::<Pod>::new(client.clone(), None);
    let lean = pods().prune(["spec.volumes"]).prune(["status"]).managed_fields(true);
    let object = br#"{"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[{}]},
        "spec":{"containers":[],"volumes":[{"name":"v"}]},"status":{"phase":"Running"}}}"#;
    let Ok(decode::Frame::Event(WatchEvent::Applied(Decoded::Fits(pod)))) =
        lean.decoder.frame(object)
    else {
        panic!("the object fits")
    };
    assert!(pod.metadata.managed_fields.is_some() && pod.status.is_none());
    assert!(pod.spec.as_ref().is_some_and(|spec| spec.volumes.is_none()));
    let refused =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pods().prune(["metadata.name"])));
    let message = refused.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(*message, "cannot prune pods: `metadata.name` drops `metadata.name`");
}
