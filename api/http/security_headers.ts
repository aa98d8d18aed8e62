import helmet from 'helmet';

/**
 * The API serves no page but the documentation, whose assets are local; nothing may be framed, sniffed or sent to
 * others. TLS belongs to the proxy in front, and so does the decision to insist on it.
 */
export function securityHeaders() {
  return helmet({
    strictTransportSecurity: false,
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
