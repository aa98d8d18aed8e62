import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { TearDown } from './database.ts';

export const BANK = 'https://www.ecb.europa.eu';

export type Quotes = Readonly<Record<string, string>>;
/** What one euro is worth, by day and currency. */
export type QuotedDays = Readonly<Record<string, Quotes>>;

/** The bank's document of these days, in the order in which they are given. */
export function ratesXml(days: QuotedDays, quote: '"' | "'" = '"'): string {
  const cubes = Object.entries(days).map(([day, rates]) => {
    const rows = Object.entries(rates).map(([currency, rate]) => `<Cube currency="${currency}" rate="${rate}"/>`);
    return `<Cube time="${day}">\n${rows.join('\n')}\n</Cube>`;
  });
  const text = `<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
<gesmes:subject>Reference rates</gesmes:subject>
<gesmes:Sender>
<gesmes:name>European Central Bank</gesmes:name>
</gesmes:Sender>
<Cube>
${cubes.join('\n')}
</Cube>
</gesmes:Envelope>
`;
  return quote === '"' ? text : text.replaceAll('"', quote);
}

type Respond = (request: IncomingMessage, response: ServerResponse) => void;

export type RatesBank = Readonly<{
  origin: string;
  /** As PROVIDER_ORIGINS. */
  origins: ReadonlyMap<string, string>;
  /** The documents that were asked for, such as `daily`. */
  asked: string[];
  /** From now on all know these days; the first is the newest. */
  publish: (days: QuotedDays) => void;
  /** Responds in place of the documents; undefined: they are there again. */
  respond: (by: Respond | undefined) => void;
  close: () => Promise<void>;
}>;

const NAMES: Readonly<Record<string, string>> = {
  '/stats/eurofxref/eurofxref-daily.xml': 'daily',
  '/stats/eurofxref/eurofxref-hist-90d.xml': 'recent',
  '/stats/eurofxref/eurofxref-hist.xml': 'history',
};
const RECENT_DAYS = 90;

function shownIn(document: string, days: QuotedDays): QuotedDays {
  const sorted = Object.entries(days).toSorted(([one], [other]) => (one < other ? 1 : -1));
  if (document === 'history') return Object.fromEntries(sorted);
  if (document === 'daily') return Object.fromEntries(sorted.slice(0, 1));
  const since = new Date(Date.parse(sorted[0]?.[0] ?? '') - RECENT_DAYS * 86_400_000).toISOString().slice(0, 10);
  return Object.fromEntries(sorted.filter(([day]) => day > since));
}

/** The web server of a central bank, on loopback. */
export async function openRatesBank(t: TearDown): Promise<RatesBank> {
  const asked: string[] = [];
  let days: QuotedDays = {};
  let respond: Respond | undefined;
  const server = createServer((request, response) => {
    const document = NAMES[request.url ?? ''];
    if (document) asked.push(document);
    if (respond) return respond(request, response);
    if (!document) return void response.writeHead(404).end();
    const body = gzipSync(ratesXml(shownIn(document, days)));
    response.writeHead(200, { 'content-type': 'text/xml', 'content-encoding': 'gzip' }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  t.teardown(close);
  return {
    origin,
    origins: new Map([[BANK, origin]]),
    asked,
    publish: (published) => {
      days = published;
    },
    respond: (by) => {
      respond = by;
    },
    close,
  };
}
