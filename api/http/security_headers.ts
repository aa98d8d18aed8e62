import helmet from 'helmet';

/**
 * The API serves no page but the documentation, whose assets are local; nothing may be framed, sniffed or sent to
 * others. TLS belongs to the proxy in front, and so does the decision to insist on it.
 */
export function securityHeaders() {
  return helmet({
    strictTransportSecurity: false,
    // For browsers of the past, or plug-ins; nothing here needs them.
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        baseUri: ["'none'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
      },
    },
  });
}
