import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import t from 'tap';
import { BrokenTextError, utf16ToUtf8 } from '../../engine/text_encoding.ts';

const pass = (...chunks: Uint8Array[]) => buffer(utf16ToUtf8(Readable.from(chunks, { objectMode: false })));
const marked = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le');

t.test('UTF-16 with a mark becomes UTF-8, however it is cut, and other bytes stay as they are', async (t) => {
  const property = fc.asyncProperty(
    fc.string({ unit: 'grapheme', maxLength: 30 }),
    fc.array(fc.nat(5), { maxLength: 20 }),
    fc.constantFrom('utf-16le', 'utf-16be', 'utf-8'),
    async (text, cuts, encoding) => {
      const little = marked(text);
      const bytes = encoding === 'utf-8' ? Buffer.from(text) : encoding === 'utf-16be' ? little.swap16() : little;
      const chunks: Buffer[] = [];
      let at = 0;
      for (const cut of cuts) {
        chunks.push(bytes.subarray(at, at + cut));
        at += cut;
      }
      chunks.push(bytes.subarray(at));
      return (await pass(...chunks.filter((chunk) => chunk.length > 0))).toString() === text;
    },
  );
  await fc.assert(property, { seed: 20_261_129, numRuns: 300 });
  for (const bytes of ['', 'ff', 'fe', 'fffd0041', '00410042', '89504e47']) {
    t.equal((await pass(Buffer.from(bytes, 'hex'))).toString('hex'), bytes);
  }
});

t.test('broken UTF-16 is an error', async (t) => {
  for (const bytes of ['fffe61', 'fffe00d8', 'fffe00d86100']) {
    await t.rejects(pass(Buffer.from(bytes, 'hex')), BrokenTextError, bytes);
  }
});

t.test('what ends the source ends the text', async (t) => {
  const source = Readable.from(
    (async function* () {
      yield marked('a');
      throw new Error('gone');
    })(),
    { objectMode: false },
  );
  await t.rejects(buffer(utf16ToUtf8(source)), { message: 'gone' });
  const endless = Readable.from(
    (async function* () {
      for (;;) yield marked('a');
    })(),
    { objectMode: false },
  );
  const text = utf16ToUtf8(endless);
  for await (const _ of text) break;
  t.ok(endless.destroyed, 'a reader that leaves ends the source');
});
