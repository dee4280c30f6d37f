//! The page, embedded in the binary.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

const FILES: [(&str, &str, &str); 3] = [
    ("index.html", "text/html; charset=utf-8", include_str!("../page/index.html")),
    ("app.js", "text/javascript; charset=utf-8", include_str!("../page/app.js")),
    ("style.css", "text/css; charset=utf-8", include_str!("../page/style.css")),
];

pub(crate) async fn index() -> Response {
    show("index.html")
}

pub(crate) async fn file(Path(name): Path<String>) -> Response {
    show(&name)
}

fn show(name: &str) -> Response {
    match FILES.into_iter().find(|(known, ..)| *known == name) {
        Some((_, kind, text)) => ([(header::CONTENT_TYPE, kind)], text).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
