// Runs in the browser's own window before a page is loaded, with the settings of the load: `addresses` are
// pairs of a name and its address, empty for all names that the system resolves; `authorities` is PEM.
(async (settings) => {
  const dns = Cc["@mozilla.org/network/native-dns-override;1"].getService(Ci.nsINativeDNSResolverOverride);
  for (const [name, address] of settings.addresses) {
    dns.addIPOverride(name, address);
  }
  const certificates = Cc["@mozilla.org/security/x509certdb;1"].getService(Ci.nsIX509CertDB);
  for (const [, text] of settings.authorities.matchAll(/-----BEGIN CERTIFICATE-----([^-]+)-----END/g)) {
    certificates.addCertFromBase64(text.replace(/\s/g, ""), "C,,");
  }
  const { NetworkRequest } = ChromeUtils.importESModule(
    "chrome://remote/content/shared/NetworkRequest.sys.mjs"
  );
  const hosts = new Set(settings.addresses.map(([name]) => name));
  const connections = (globalThis.h123Connections = []);
  const observer = {
    observe(subject, topic) {
      const channel = subject.QueryInterface(Ci.nsIHttpChannel);
      if (topic === "http-on-modify-request") {
        if (hosts.size && !hosts.has(channel.URI.host)) {
          channel.cancel(Cr.NS_ERROR_UNKNOWN_HOST);
        }
        return;
      }
      const { localPort, remoteAddress, remotePort } = channel.QueryInterface(Ci.nsIHttpChannelInternal);
      const tls = channel.securityInfo;
      connections.push({
        request: `${ChannelWrapper.get(channel).id}-${NetworkRequest.UNIQUE_ID_SUFFIX}`,
        redirects: channel.QueryInterface(Ci.nsITimedChannel).redirectCount,
        localPort,
        remote: `${remoteAddress} ${remotePort}`,
        version: tls?.protocolVersion,
        cipher: tls?.cipherName,
        group: tls?.keaGroupName,
      });
    },
  };
  Services.obs.addObserver(observer, "http-on-modify-request");
  Services.obs.addObserver(observer, "http-on-examine-response");
  // A site has a process for itself. Users have browsers in which one is ready.
  for (let tries = 0; tries < 40; tries++) {
    const { children } = await ChromeUtils.requestProcInfo();
    if (children.some(({ type }) => type === "preallocated")) {
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
})
