import { ProviderError } from '../providers/outgoing/index.ts';
import { FLUSH, lineText, PktLineError, PktReader, pktLine } from './pkt_line.ts';

/**
 * What the gateway does with pushes; a client uses no capability that is not named. It deletes nothing: a client that is
 * not told so refuses a deletion by itself, without a reason.
 */
const KEPT = [
  ...['report-status', 'report-status-v2', 'side-band-64k', 'quiet', 'ofs-delta', 'atomic'],
  'delete-refs',
] as const;

function capabilitiesOf(text: string): string {
  const format = /(?:^| )object-format=(\S+)/.exec(text)?.[1] ?? 'sha1';
  if (format !== 'sha1') throw new PktLineError(`is of a repository with ${format} names`);
  return [...KEPT, 'object-format=sha1', 'agent=business-runner'].join(' ');
}

/**
 * The refs that the provider offers for a push, with the capabilities of the gateway in place of its own: branches and tags, which are
 * what mirrors hold.
 * @throws ProviderError where it is not an advertisement for pushes
 */
export async function* pushAdvertisement(
  source: AsyncIterable<Uint8Array>,
  provider: string,
): AsyncGenerator<Buffer, void, void> {
  try {
    yield* rewritten(source);
  } catch (error) {
    if (!(error instanceof PktLineError)) throw error;
    throw new ProviderError(provider, 'failed', `What the provider offers for a push ${error.message}.`);
  }
}

async function* rewritten(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void, void> {
  const reader = new PktReader(source);
  const head = await reader.next();
  if (!Buffer.isBuffer(head) || lineText(head) !== '# service=git-receive-pack' || (await reader.next()) !== 'flush') {
    throw new PktLineError('is no advertisement for pushes');
  }
  yield Buffer.concat([pktLine('# service=git-receive-pack\n'), FLUSH]);
  let capabilities: string | undefined;
  let isFirst = true;
  for (let line = await reader.next(); line !== 'flush'; line = await reader.next()) {
    if (line === 'end') throw new PktLineError('ends before its refs do');
    const nul = line.indexOf(0);
    if (capabilities === undefined && nul >= 0) capabilities = capabilitiesOf(lineText(line.subarray(nul + 1)));
    const text = lineText(nul < 0 ? line : line.subarray(0, nul));
    if (!/^[0-9a-f]{40} refs\/(?:heads|tags)\//.test(text)) continue;
    yield pktLine(isFirst ? `${text}\0${capabilities ?? capabilitiesOf('')}\n` : `${text}\n`);
    isFirst = false;
  }
  if (isFirst) yield pktLine(`${'0'.repeat(40)} capabilities^{}\0${capabilities ?? capabilitiesOf('')}\n`);
  yield FLUSH;
}
