import { NetError, type WebClient } from '../net/index.ts';
import { createPageReader, isPageFailure, type KeptPage, readPage } from '../website/index.ts';

export type AddressFailure = Readonly<{ url: string; code: string; message: string }>;

const PAGE_BYTES = 2 * 1024 * 1024;

/**
 * Reads single pages of any website, side by side, robots.txt respected. Pages that cannot be read are reported, and stop no others.
 * @throws the signal's reason
 */
export async function readAddresses(
  client: WebClient,
  addresses: readonly string[],
  options: Readonly<{ blocked: (url: URL) => boolean; totalMs: number; signal?: AbortSignal | undefined }>,
): Promise<{ pages: KeptPage[]; failures: AddressFailure[] }> {
  const { blocked, totalMs, signal } = options;
  const late = AbortSignal.timeout(totalMs);
  const ends = signal ? AbortSignal.any([signal, late]) : late;
  const reader = createPageReader({ client, blocked, signal: ends });

  async function read(address: string): Promise<KeptPage | AddressFailure> {
    try {
      const raw = await reader.open(address, { maxBytes: PAGE_BYTES, totalMs });
      return { requestedUrl: address, page: await readPage(raw, ends), raw };
    } catch (error) {
      signal?.throwIfAborted();
      const failure = late.aborted ? new NetError('timed_out', `${address} takes too long.`) : error;
      if (!isPageFailure(failure)) throw failure;
      return { url: address, code: failure.reason, message: failure.message };
    }
  }

  const results = await Promise.all(addresses.map(read));
  return {
    pages: results.filter((result): result is KeptPage => 'page' in result),
    failures: results.filter((result): result is AddressFailure => 'code' in result),
  };
}
