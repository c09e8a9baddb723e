//! What protocols did beyond requests, on all connections, warm-up included: kinds of handshake, early data,
//! pushes, migrations.

use model::number::float;
use model::tally::Security;
use model::units::{counted, format_bytes};
use serde_json::{Value, json};

use super::summary::Summary;

/// Lines for people: name and text.
pub(crate) fn lines(summary: &Summary) -> Vec<(&'static str, String)> {
    let sums = &summary.connections.protocols;
    let mut lines: Vec<(&'static str, String)> = Vec::new();
    for (security, connections) in &summary.connections.security.0 {
        lines.push(("TLS", format!("{connections} × {}", agreed(security))));
    }
    if sums.early_accepted + sums.early_rejected > 0 {
        let again = match sums.early_rejected {
            0 => String::new(),
            rejected => format!(" · rejected on {rejected} and sent again"),
        };
        let (requests, accepted) =
            (counted(sums.early_requests, "request"), counted(sums.early_accepted, "connection"));
        lines.push(("early data", format!("{requests} · accepted on {accepted}{again}")));
    }
    if sums.pushed + sums.pushed_broken > 0 {
        let bytes = format_bytes(float(sums.pushed_bytes));
        let broken = match sums.pushed_broken {
            0 => String::new(),
            broken => format!(" · {broken} promised but incomplete"),
        };
        lines.push(("pushed", format!("{}, {bytes} of bodies{broken}", counted(sums.pushed, "response"))));
    }
    if sums.migrated > 0 || summary.failed_migrations.total() > 0 {
        let migrated = counted(sums.migrated, "connection");
        let answered = sums.migrated_answered;
        lines.push((
            "migrated",
            format!("{migrated} to a new local address · {answered} received a packet there"),
        ));
    }
    for (reason, connections) in &summary.failed_migrations.0 {
        lines.push(("not migrated", format!("{connections} × {reason}")));
    }
    lines
}

/// What a reader has to know before using the numbers.
pub(crate) fn warnings(summary: &Summary) -> Vec<String> {
    let (setup, connections) = (&summary.setup, &summary.connections);
    let sums = &connections.protocols;
    let unanswered = sums.migrated.saturating_sub(sums.migrated_answered);
    let mut warnings = Vec::new();
    if unanswered > 0 {
        warnings.push(format!(
            "{unanswered} of {} received nothing at the new address: the server may not support migration, or the \
             test ended too early",
            counted(sums.migrated, "migrated connection")
        ));
    }
    if setup.migrates && sums.migrated == 0 {
        warnings
            .push("no connection migrated: none was open at --migrate-at, or the test had ended".to_owned());
    }
    if setup.resumes && connections.resumed_handshake.count() + connections.early_handshake.count() == 0 {
        warnings.push(
            "no session was resumed: no connection was opened after another had closed (see \
             --requests-per-connection), or the server sent or accepted no ticket"
                .to_owned(),
        );
    } else if setup.early_data && sums.early_accepted == 0 {
        warnings.push(
            "no early data was accepted: the server does not support it, or no request could be early data"
                .to_owned(),
        );
    }
    warnings
}

/// An object with the JSON's keys of protocols.
pub(crate) fn json(summary: &Summary) -> Value {
    let connections = &summary.connections;
    let sums = &connections.protocols;
    let security = connections.security.0.iter().map(|(security, count)| {
        json!({
            "tls_version": security.tls_version, "cipher_suite": security.cipher_suite,
            "key_exchange": security.key_exchange, "connections": count,
        })
    });
    let failed = summary.failed_migrations.0.iter();
    let failed = failed.map(|(reason, count)| json!({ "reason": reason, "connections": count }));
    json!({
        "handshakes": {
            "cold": connections.handshake.count(), "resumed": connections.resumed_handshake.count(),
            "early": connections.early_handshake.count(),
        },
        "early_data": {
            "requests": sums.early_requests, "accepted": sums.early_accepted, "rejected": sums.early_rejected,
        },
        "security": security.collect::<Vec<_>>(),
        "push": { "responses": sums.pushed, "broken": sums.pushed_broken, "body_bytes": sums.pushed_bytes },
        "migration": {
            "migrated": sums.migrated, "answered": sums.migrated_answered,
            "failed": failed.collect::<Vec<_>>(),
        },
    })
}

/// Lines of the table: name and count.
pub(crate) fn counts(summary: &Summary) -> [(&'static str, u64); 8] {
    let sums = &summary.connections.protocols;
    [
        ("early_accepted", sums.early_accepted),
        ("early_rejected", sums.early_rejected),
        ("early_requests", sums.early_requests),
        ("pushed", sums.pushed),
        ("pushed_broken", sums.pushed_broken),
        ("migrated", sums.migrated),
        ("migrations_answered", sums.migrated_answered),
        ("migrations_failed", summary.failed_migrations.total()),
    ]
}

fn agreed(security: &Security) -> String {
    let parts = [&security.tls_version, &security.cipher_suite, &security.key_exchange];
    parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(" ")
}
