//! Connections: accepted, limited, ended.

use crate::poll_on_wake::PollOnWake;
use crate::state::AppState;
use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

/// Bytes of a request's head, and what is buffered of a response.
const MAX_BUFFER_BYTES: usize = 64 << 10;
/// Connections that are still open after this time at the end are cut.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads a certificate and its key.
pub(crate) fn tls(cert: &Path, key: &Path) -> io::Result<TlsAcceptor> {
    let bad = |path: &Path, what: String| io::Error::other(format!("{}: {what}", path.display()));
    let certs = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| bad(cert, e.to_string()))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|e| bad(key, e.to_string()))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(certs, private)
        .map_err(|e| bad(cert, e.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves until `stop`; then waits for what is going on, but not for long.
pub(crate) async fn serve(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    app: AppState,
    stop: CancellationToken,
) {
    let connections = Arc::new(Semaphore::new(app.config.limits.connections));
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // No descriptors left, most likely: others must end first.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else {
            drop(stream);
            continue;
        };
        let connection =
            Connection { router: router.clone(), app: app.clone(), from, stop: stop.clone() };
        let acceptor = acceptor.clone();
        tasks.spawn(async move {
            let _permit = permit;
            connection.run(stream, acceptor).await;
        });
    }
    drop(listener);
    tasks.close();
    if tokio::time::timeout(DRAIN_TIMEOUT, tasks.wait()).await.is_err() {
        tracing::warn!("some connections were cut");
    }
}

struct Connection {
    router: Router,
    app: AppState,
    from: SocketAddr,
    stop: CancellationToken,
}

impl Connection {
    async fn run(self, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
        let _ = stream.set_nodelay(true);
        let head = Duration::from_secs(self.app.config.limits.head_seconds);
        match acceptor {
            None => self.http(stream).await,
            Some(acceptor) => {
                if let Ok(Ok(stream)) = tokio::time::timeout(head, acceptor.accept(stream)).await {
                    self.http(stream).await;
                }
            }
        }
    }

    async fn http<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S) {
        let limits = &self.app.config.limits;
        let io =
            TokioIo::new(IdleTimeoutIo::new(stream, Duration::from_secs(limits.stalled_seconds)));
        let (from, router) = (self.from, self.router);
        let service = tower::service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(from);
            router.clone().oneshot(request.map(axum::body::Body::new))
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(limits.head_seconds))
            .max_buf_size(MAX_BUFFER_BYTES)
            .serve_connection(io, TowerToHyperService::new(service))
            .with_upgrades();
        tokio::pin!(connection);
        tokio::select! {
            biased;
            // Broken connections are the client's business.
            _ = connection.as_mut() => {}
            () = PollOnWake::new(self.stop.cancelled()) => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
    }
}

/// A stream whose reader may not stop for ever.
#[derive(Debug)]
struct IdleTimeoutIo<S> {
    stream: S,
    timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> IdleTimeoutIo<S> {
    fn new(stream: S, timeout: Duration) -> Self {
        IdleTimeoutIo { stream, timeout, timer: None }
    }

    /// A write went on, or did not.
    fn check_progress<T>(
        &mut self,
        cx: &mut Context<'_>,
        wrote: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if wrote.is_ready() {
            self.timer = None;
            return wrote;
        }
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for IdleTimeoutIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for IdleTimeoutIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.check_progress(cx, wrote)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.check_progress(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.check_progress(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.check_progress(cx, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
