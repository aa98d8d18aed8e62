import type { IncomingMessage, ServerResponse } from 'node:http';
import { Problem } from '../../engine/db/problem.ts';
import { invalid } from './errors.ts';

/**
 * Headers that decide who asks, what for, and where the body ends. Of two that differ, a proxy in front may go by the one and
 * we by the other, so that it admits one request and we serve another.
 */
const SINGLE = new Set([
  'host',
  'authorization',
  'origin',
  'sec-fetch-site',
  'content-length',
  'transfer-encoding',
  'content-type',
  'content-encoding',
  'expect',
  'range',
  'if-range',
  'idempotency-key',
  'last-event-id',
  'x-organization-id',
  'x-lease-token',
]);

/** The first of these headers that is there twice, as it is written. Node keeps one of some, and joins others. */
function doubledHeader({ rawHeaders }: IncomingMessage): string | undefined {
  const seen = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const given = rawHeaders[at] ?? '';
    const name = given.toLowerCase();
    if (!SINGLE.has(name)) continue;
    if (seen.has(name)) return given;
    seen.add(name);
  }
  return undefined;
}

/**
 * What any request has to fulfil before its headers are believed. What the parser refuses by itself (two lengths, a length with
 * a transfer coding) does not come here. A refusal is the last response of its connection: where the next request begins is
 * no longer certain.
 * @throws Problem 400 or 415
 */
export function checkRequestHeaders(req: IncomingMessage, res: ServerResponse): void {
  try {
    requireHeaders(req);
  } catch (error) {
    res.shouldKeepAlive = false;
    throw error;
  }
}

function requireHeaders(req: IncomingMessage): void {
  if (req.httpVersionMajor !== 1) throw invalid('', 'must be HTTP/1.1 or HTTP/1.0', 'invalid_version');
  const doubled = doubledHeader(req);
  if (doubled !== undefined) throw invalid(doubled, 'is sent twice', 'doubled_header');
  if (req.httpVersionMinor > 0 && req.headers.host === undefined) throw invalid('Host', 'is required', 'invalid_type');
  const coding = req.headers['transfer-encoding'];
  if (coding === undefined) return;
  if (req.httpVersionMinor === 0) throw invalid('Transfer-Encoding', 'is not known to HTTP/1.0', 'invalid_version');
  if (coding.toLowerCase() !== 'chunked') {
    throw new Problem(415, 'unsupported_media_type', 'Send the body with no other Transfer-Encoding than chunked.');
  }
}
