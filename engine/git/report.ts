import { oneLine } from '../one_line.ts';
import { FLUSH, pktLine } from './pkt_line.ts';
import type { PushRequest } from './push_request.ts';

// The response to a push (gitprotocol-pack, gitprotocol-capabilities): texts of the server on the second band, the report on
// the first.

const LONGEST_BAND = 65_000;
const LONGEST_REASON = 400;

export type PushReport = Readonly<{
  /** `ok`, or why the pack was not taken. */
  unpack: string;
  /** By ref: null where it is as the push wants it, else why not. */
  results: ReadonlyMap<string, string | null>;
  /** Git shows them to its user. */
  messages: readonly string[];
}>;

const band = (number: 1 | 2, data: Buffer) => pktLine(Buffer.concat([Buffer.from([number]), data]));

/** A terminal would obey controls. */
const line = (text: string) => oneLine(text, LONGEST_REASON);

/** What a client that listens to it reads as `remote: …`. */
export function message(text: string): Buffer {
  return band(2, Buffer.from(`${line(text)}\n`));
}

/** Says nothing, so that nobody on the way takes the connection for dead. */
export const KEEP_ALIVE = band(2, Buffer.alloc(0));

export const takesBands = ({ capabilities }: Pick<PushRequest, 'capabilities'>) => capabilities.has('side-band-64k');

function statusLines({ unpack, results }: PushReport): Buffer {
  const lines = [...results].map(([ref, reason]) => (reason === null ? `ok ${ref}\n` : `ng ${ref} ${line(reason)}\n`));
  return Buffer.concat([...[`unpack ${line(unpack)}\n`, ...lines].map(pktLine), FLUSH]);
}

/** The end of a response: what is left to say, and the report where the client wants one. */
export function reportOf(request: Pick<PushRequest, 'capabilities'>, report: PushReport): Buffer {
  const { capabilities } = request;
  const wantsStatus = capabilities.has('report-status') || capabilities.has('report-status-v2');
  const status = wantsStatus ? statusLines(report) : Buffer.alloc(0);
  if (!takesBands(request)) return status;
  const parts = report.messages.map(message);
  for (let at = 0; at < status.length; at += LONGEST_BAND) parts.push(band(1, status.subarray(at, at + LONGEST_BAND)));
  return Buffer.concat([...parts, FLUSH]);
}
