import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { report } from '../../scripts/report/command.ts';

/** What `npm run report` prints on a screen of 100 columns without colours. */
export async function printed(url: string, ...argv: string[]): Promise<string> {
  const stream = new PassThrough();
  const out = text(stream);
  await report(argv, () => url, { stream, columns: 100, style: (_, shown) => shown });
  stream.end();
  return out;
}

/** The objects of `--format json`. */
export const jsonLines = (out: string) =>
  out
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
