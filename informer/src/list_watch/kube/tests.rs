//! Against a server in process: what is asked, and what comes of every kind of answer.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http_body_util::{Full, StreamBody};
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use parking_lot::Mutex;

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
async fn watch_asks_for_plain_text_bookmarks_and_its_place() {
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
async fn watch_with_initial_events_asks_for_the_newest_unless_told_otherwise() {
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
async fn list_asks_for_a_page_and_a_place_in_it_but_never_for_both_place_and_version() {
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
async fn what_has_arrived_together_is_one_batch() {
    assert_eq!(batches(vec![Ok(ONE), Ok(TWO)]).await.0, [2]);
}

#[tokio::test]
async fn good_frames_come_before_the_error_whatever_it_is() {
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
    assert!(matches!(batches(vec![Ok(ONE)]).await, (_, None)), "a clean end is no error");
}

#[tokio::test]
async fn misfit_is_opaque_and_the_watch_goes_on() {
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
async fn refusal_says_who_may_not_do_what() {
    let status =
        br#"{"kind":"Status","code":403,"reason":"Forbidden","message":"pods is forbidden"}"#;
    let (client, _) = client(403, &[("retry-after", "7")], vec![Ok(status)]);
    let pods = KubeListWatch::<Pod>::new(client, Some("x"));
    let error = pods.list(&ListRequest::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot list pods in namespace x: forbidden: pods is forbidden");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    let request = WatchRequest::after("1".into(), Duration::from_secs(300));
    let Err(error) = pods.watch(&request).await else { panic!("it was opened") };
    assert_eq!(error.to_string(), "cannot watch pods in namespace x: forbidden: pods is forbidden");
}

#[test]
fn time_to_wait_is_a_number_or_a_date_of_the_servers_clock() {
    let wait = |after: &str, date: &str| {
        let headers = [(header::RETRY_AFTER, after), (header::DATE, date)];
        let headers = headers.map(|(name, value)| (name, value.parse().unwrap()));
        retry_after(&headers.into_iter().collect()).map(|wait| wait.as_secs())
    };
    assert_eq!(wait(" 7 ", ""), Some(7));
    let later = "Sun, 06 Nov 1994 08:50:37 GMT";
    assert_eq!(wait(later, "Sun, 06 Nov 1994 08:49:37 GMT"), Some(60));
    assert_eq!(wait(later, "Sun, 06 Nov 1994 08:51:37 GMT"), None, "it is over");
    for odd in ["", "soon", "-1", "Sun, 99 Nov 1994 08:49:37 GMT"] {
        assert_eq!((wait(odd, later), wait(later, odd)), (None, None), "{odd}");
    }
}

#[tokio::test]
async fn page_of_a_proxy_is_refused_or_corrupt() {
    let (bad_gateway, _) = client(502, &[], vec![Ok(b"<html>")]);
    let error = KubeListWatch::<Pod>::new(bad_gateway, None).list(&ListRequest::new()).await;
    assert_eq!(error.unwrap_err().to_string(), "cannot list pods: status 502");
    let (html, _) = client(200, &[], vec![Ok(b"<html>")]);
    let error = KubeListWatch::<Pod>::new(html, None).list(&ListRequest::new()).await;
    assert!(matches!(error, Err(ListError::Corrupt { .. })), "{error:?}");
}

#[tokio::test]
async fn server_that_is_not_there_is_unreachable() {
    let service = tower::service_fn(|_: Request<Body>| async {
        Err::<Response<Full<Bytes>>, _>(std::io::Error::other("connection refused"))
    });
    let client = kube_client::Client::new(service, "default");
    let error = KubeListWatch::<Pod>::new(client, None).list(&ListRequest::new()).await;
    let text = error.unwrap_err().to_string();
    assert_eq!(text, "cannot list pods: connection refused");
}
