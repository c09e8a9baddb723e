// The versions of HTTP: only the variant's. Without a variant the browser and the server choose.
{% if variant in ["h1", "h1s"] %}
user_pref("network.http.http2.enabled", false);
{% endif %}
{% if variant == "h3" %}
// The first request uses HTTP/3, without Alt-Svc, and no TCP connection is tried in parallel.
user_pref("network.http.http3.enable", true);
user_pref("network.http.http3.alt-svc-mapping-for-testing", "{{host}};h3=:{{port}}");
user_pref("network.http.http3.force-use-alt-svc-mapping-for-testing", true);
{% elif variant %}
user_pref("network.http.http3.enable", false);
{% endif %}
// Otherwise HTTP/3 needs a certificate of a public authority.
user_pref("network.http.http3.disable_when_third_party_roots_found", false);

// Times are not rounded.
user_pref("privacy.reduceTimerPrecision", false);
user_pref("privacy.reduceTimerPrecision.unconditional", false);

// No connection before its request: it would hide the times of connect and handshake.
user_pref("network.http.speculative-parallel-limit", 0);
user_pref("network.dns.disablePrefetch", true);
user_pref("network.dns.disablePrefetchFromHTTPS", true);
user_pref("network.predictor.enabled", false);
user_pref("network.prefetch-next", false);

// The page's scheme and port do not change. In a lab, public sites have private addresses.
user_pref("dom.security.https_first", false);
user_pref("dom.security.https_first_schemeless", false);
user_pref("network.dns.native_https_query", false);
user_pref("network.trr.mode", 5);
user_pref("network.lna.enabled", false);
user_pref("network.proxy.type", 0);

// One process waits for the page's site, and further ones do not start while the page loads.
user_pref("dom.ipc.processPrelaunch.fission.number", 1);

// Nothing that the page did not ask for uses the network.
user_pref("app.normandy.enabled", false);
user_pref("app.update.auto", false);
user_pref("browser.chrome.site_icons", false);
user_pref("browser.newtab.preload", false);
user_pref("browser.region.update.enabled", false);
user_pref("browser.safebrowsing.malware.enabled", false);
user_pref("browser.safebrowsing.phishing.enabled", false);
user_pref("browser.search.update", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("dom.push.connection.enabled", false);
user_pref("extensions.getAddons.cache.enabled", false);
user_pref("extensions.systemAddon.update.enabled", false);
user_pref("extensions.update.enabled", false);
user_pref("media.gmp-manager.updateEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("security.OCSP.enabled", 0);
user_pref("toolkit.telemetry.enabled", false);

// The end of the browser saves nothing.
user_pref("toolkit.shutdown.fastShutdownStage", 3);
