import sniffEncoding from 'html-encoding-sniffer';

/** `type/subtype` in lower case, without parameters. */
export function essence(contentType: string): string {
  return (contentType.split(';')[0] ?? '').trim().toLowerCase();
}

function charsetOf(contentType: string): string | undefined {
  return /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType)?.[1];
}

/** A content type as it is kept: without parameters, save for a charset, which the bytes alone may not tell. */
export function mediaTypeOf(contentType: string): string {
  const charset = charsetOf(contentType);
  const known = charset !== undefined && /^[\w.:-]{1,40}$/.test(charset);
  return known ? `${essence(contentType)}; charset=${charset.toLowerCase()}` : essence(contentType);
}

/** What Node cannot decode (`x-user-defined`, `replacement`) is read as UTF-8: a page is text, and never a failure. */
function decoder(encoding: string) {
  try {
    return new TextDecoder(encoding);
  } catch {
    return new TextDecoder('utf-8');
  }
}

/** The text of a page, decoded as a browser would. Never fails: what cannot be decoded becomes U+FFFD. */
export function decodeText(bytes: Uint8Array, contentType: string): string {
  const label = charsetOf(contentType);
  const encoding = sniffEncoding(bytes, {
    ...(label === undefined ? {} : { transportLayerEncodingLabel: label }),
    // Browsers say windows-1252 for old pages; today's pages without a word are UTF-8 unless their bytes say no.
    defaultEncoding: isUtf8(bytes) ? 'UTF-8' : 'windows-1252',
  });
  return decoder(encoding).decode(bytes);
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
