//! How the requests and connections of a loop are made, as `h123 load` can make them.

use crate::error::InputError;
use crate::keys;
use crate::options::{Body, Options, Order};
use crate::reader::{Key, Table};
use crate::request_fields::{check_method, parse_field};

pub(super) const KEYS: &[Key] = keys! {
    "requests_per_connection", "whole number", "no limit", "1",
        "A connection is closed after this many requests, and another one opened; 1 to 1 000 000 000.";
    "connect_timeout", "duration", "none", r#""5s""#, "A connection that is not ready after this time has failed.";
    "request_timeout", "duration", "none", r#""10s""#,
        "A request without a complete response after this time has failed.";
    "method", "text", "`\"GET\"`, with a body `\"POST\"`", r#""PUT""#, "The method of every request.";
    "headers", "table of texts", "none", r#"{ accept-encoding = "gzip" }"#,
        "Fields of every request; they replace the client's own.";
    "body", "text", "none", r#""name=value""#, "The body of every request.";
};
const MOST_REQUESTS_EACH: u64 = 1_000_000_000;

pub(super) fn read(table: &Table<'_>) -> Result<Options, InputError> {
    let mut options = Options::default();
    let each = table.integer("requests_per_connection", 1..=MOST_REQUESTS_EACH)?;
    options.connections.requests_each = each.map(|each| each.value);
    options.connections.connect_timeout_ns =
        table.duration_above_zero("connect_timeout")?.map(|time| time.value);
    options.connections.request_timeout_ns =
        table.duration_above_zero("request_timeout")?.map(|time| time.value);
    let order = table.named::<Order>("order")?;
    options.requests.random_order = order.is_some_and(|order| order.value == Order::Random);
    if let Some(method) = table.string("method")? {
        check_method(&method.value).map_err(|problem| method.error(format!("`method`: {problem}")))?;
        options.requests.method = Some(method.value);
    }
    if let Some(headers) = table.table("headers")? {
        for name in headers.keys() {
            let value = headers.required(&name.value, Table::string)?;
            let field = parse_field(&name.value, &value.value)
                .map_err(|problem| name.error(format!("`headers`: `{}`: {problem}", name.value)))?;
            options.requests.fields.extend(field);
        }
    }
    if let Some(body) = table.string("body")? {
        options.requests.bodies = vec![Body(body.value.into_bytes().into())];
        options.requests.body = Some(0);
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use crate::study::tests::{SHORT, parse};

    fn with(keys: &str) -> Result<Plan, String> {
        let path = if keys.contains("PUT") { "/echo" } else { "/bytes/1" };
        parse(&SHORT.replace("page_load_time", "request_time").replace(
            "kind = \"page\"\npage = \"small\"",
            &format!("kind = \"closed\"\npaths = [\"{path}\"]\nrequests = 20\n{keys}"),
        ))
    }

    #[test]
    fn requests_are_made_as_the_workload_says() {
        let keys = "requests_per_connection = 10\nconnect_timeout = '2s'\nrequest_timeout = '3s'\nmethod = 'PUT'\n\
                    headers = { Accept-Encoding = 'gzip', Host = 'other.test' }\nbody = 'k=v'\n";
        let plan = with(keys).unwrap();
        let options = &plan.workloads[0].options;
        assert_eq!(options.connections.requests_each, Some(10));
        assert_eq!(options.connections.connect_timeout_ns, Some(2_000_000_000));
        assert_eq!(options.connections.request_timeout_ns, Some(3_000_000_000));
        assert_eq!(options.requests.method.as_deref(), Some("PUT"));
        assert_eq!(options.requests.fields, [("accept-encoding".to_owned(), "gzip".to_owned())]);
        assert_eq!((&*options.requests.bodies[0].0, options.requests.body), (&b"k=v"[..], Some(0)));
        let words = plan.workloads[0].describe();
        assert!(words.ends_with("; 10 requests per connection, connect timeout 2 s, request timeout 3 s, method PUT, 1 field, body of 3 bytes"), "{words}");
        let json = serde_json::to_vec(&plan).unwrap();
        assert_eq!(Plan::from_json(&json).unwrap(), plan);
        let plain = with("").unwrap();
        assert!(plain.workloads[0].options.is_default());
        assert!(!serde_json::to_string(&plain.workloads).unwrap().contains("options"));
    }

    #[test]
    fn faults_of_requests() {
        for (keys, expected) in [
            ("requests_per_connection = 0", "`requests_per_connection` is 0"),
            ("connect_timeout = '0s'", "`connect_timeout`: 0 is too short"),
            ("method = 'GET /'", "`method`: `GET /` is not a method"),
            ("headers = { connection = 'close' }", "`headers`: `connection`: h123 sets this field itself"),
            ("headers = { a = \"b\\nc\" }", "a value has printable characters"),
        ] {
            let fault = with(keys).unwrap_err();
            assert!(fault.contains(expected), "{keys}: {fault}");
        }
        let external = with("method = 'PUT'").map(|_| ()).and_then(|()| {
            let text = SHORT.replace("page_load_time", "request_time").replace(
                "kind = \"page\"\npage = \"small\"",
                "kind = \"closed\"\npaths = [\"/echo\"]\nrequests = 20\nmethod = 'PUT'",
            );
            parse(&text.replace("[matrix]", "[matrix]\nclient = [\"wrk\"]")).map(|_| ())
        });
        let fault = external.unwrap_err();
        assert!(
            fault.contains("`wrk` cannot make the requests of the workload `small` (method PUT)"),
            "{fault}"
        );
    }
}
