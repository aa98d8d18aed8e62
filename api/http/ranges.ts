/** One part of a representation, both ends inclusive. */
export type ByteRange = Readonly<{ start: number; end: number }>;

const SINGLE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/**
 * What a Range header asks of `size` bytes (RFC 9110, 14): a range, `whole` for what we need not honour (several ranges,
 * another unit, a malformed one), or `unsatisfiable`.
 */
export function parseRange(header: string | undefined, size: number): ByteRange | 'whole' | 'unsatisfiable' {
  const match = SINGLE_RANGE.exec(header ?? '');
  const [first = '', last = ''] = match?.slice(1) ?? [];
  if (first === '' && last === '') return 'whole';
  if (first === '') {
    const length = Math.min(Number(last), size);
    if (Number(last) === 0) return 'unsatisfiable';
    // The last bytes of nothing are all of it, and no Content-Range can name them.
    return length === 0 ? 'whole' : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < start) return 'whole';
  if (start >= size) return 'unsatisfiable';
  return { start, end };
}

/** Whether If-None-Match names this entity tag; comparison is weak (RFC 9110, 13.1.2). */
export function noneMatchHits(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  const given = header.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return given.some((tag) => tag.replace(/^W\//, '') === etag);
}

/** Whether a Range may be served: If-Range is absent or names this entity tag strongly. We give out no dates to match. */
export function ifRangeHolds(header: string | undefined, etag: string): boolean {
  return header === undefined || header.trim() === etag;
}
