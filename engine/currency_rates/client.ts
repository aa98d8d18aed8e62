import { createWebClient, NetError, type WebClientOptions, type WebResponse } from '../net/index.ts';
import { type OriginMap, replacedOrigin, retryAfter } from '../providers/outgoing/index.ts';
import type { RatesDocument } from './calendar.ts';
import { type DayRates, readRates } from './document.ts';
import { CurrencyRatesError } from './errors.ts';

const DOCUMENTS: Readonly<Record<RatesDocument, string>> = {
  daily: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml',
  recent: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist-90d.xml',
  history: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist.xml',
};

/** Several times what the history has; each way, compressed and not. */
const MAX_BYTES = 64 * 1024 * 1024;
const TOTAL_MS = 90_000;

export type CurrencyRatesClientOptions = Readonly<{
  allowPrivateAddresses: boolean;
  /** What is called in place of the bank's origin (PROVIDER_ORIGINS). */
  origins: OriginMap;
  net?: Pick<WebClientOptions, 'resolve' | 'allows' | 'ca' | 'connectMs'>;
  maxBytes?: number;
  totalMs?: number;
  now?: () => number;
}>;

export type CurrencyRatesClient = Readonly<{
  /**
   * The days of one of the bank's documents, newest first.
   * @param lastDay the last day that may have rates
   * @throws CurrencyRatesError, or the signal's reason
   */
  read(document: RatesDocument, lastDay: string, signal?: AbortSignal): Promise<readonly DayRates[]>;
  close(): Promise<void>;
}>;

function refusal({ status, headers }: WebResponse, now: number): CurrencyRatesError {
  const notBefore = retryAfter(headers['retry-after'], now);
  if (status === 429) {
    return new CurrencyRatesError('rate_limited', 'The bank limits how often it is asked for rates.', { notBefore });
  }
  if (status >= 500)
    return new CurrencyRatesError('unavailable', 'The bank gives no rates at the moment.', { notBefore });
  const message = `The bank refuses to give rates, with the status ${status}.`;
  return new CurrencyRatesError('refused', message, { notBefore });
}

/** A client for the euro foreign exchange reference rates of the European Central Bank. */
export function createCurrencyRatesClient(options: CurrencyRatesClientOptions): CurrencyRatesClient {
  const { allowPrivateAddresses, origins, maxBytes = MAX_BYTES, totalMs = TOTAL_MS, now = Date.now } = options;
  const web = createWebClient({ ...options.net, allowPrivateAddresses, connections: 1 });

  async function open(url: URL, signal: AbortSignal | undefined): Promise<WebResponse> {
    const response = await web.fetch(url, {
      headers: { accept: 'application/xml, text/xml' },
      maxBytes,
      totalMs,
      signal,
      beforeHop(hop) {
        if (hop.origin === url.origin) return;
        throw new CurrencyRatesError('refused', 'The bank redirects to another server, which is not asked.');
      },
    });
    if (response.status === 200) return response;
    response.discard();
    throw refusal(response, now());
  }

  return {
    async read(document, lastDay, signal) {
      try {
        const response = await open(replacedOrigin(new URL(DOCUMENTS[document]), origins), signal);
        return await readRates(response.body, lastDay);
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof NetError) throw new CurrencyRatesError(error.reason, error.message, { cause: error });
        throw error;
      }
    },
    close: () => web.close(),
  };
}
