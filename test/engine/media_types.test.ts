import fc from 'fast-check';
import t from 'tap';
import { mediaTypeProbe, signatureProblem, textCheck } from '../../engine/media_types.ts';

async function typeOf(fileName: string, ...chunks: (string | Uint8Array)[]): Promise<string> {
  const probe = mediaTypeProbe(fileName);
  for (const chunk of chunks) probe.observe(Buffer.from(chunk));
  return probe.mediaType();
}

const png = Buffer.from('89504e470d0a1a0a0000000d4948445200000001000000010806000000', 'hex');
const latin1 = Buffer.from('caf\xe9', 'latin1');

t.test('text types need a text extension and text', async (t) => {
  t.equal(await typeOf('report.md', '# Größe'), 'text/markdown');
  t.equal(await typeOf('REPORT.CSV', 'a,b'), 'text/csv');
  t.equal(await typeOf('deep/folder/x.yml', 'a: 1'), 'application/yaml');
  t.equal(await typeOf('x.json', '{}'), 'application/json');
  t.equal(await typeOf('x.txt', '\ufeffwith a byte order mark'), 'text/plain');
  t.equal(await typeOf('empty.txt'), 'text/plain');
  t.equal(await typeOf('x.txt', latin1), 'application/octet-stream', 'not UTF-8');
  t.equal(await typeOf('x.txt', 'a\0b'), 'application/octet-stream', 'NUL is not text');
  t.equal(await typeOf('noextension', 'hello'), 'application/octet-stream');
  t.equal(await typeOf('x.unknown', 'hello'), 'application/octet-stream');
  t.equal(await typeOf('bmw.txt', 'BMW'), 'text/plain', 'two letters of a signature do not make a picture');
});

t.test('signatures decide over the name', async (t) => {
  t.equal(await typeOf('picture.png', png), 'image/png');
  t.equal(await typeOf('picture', png), 'image/png');
  t.equal(await typeOf('not-really.txt', png), 'image/png');
  t.equal(await typeOf('x.pdf', '%PDF-1.7\n'), 'application/pdf');
  t.equal(await typeOf('picture.png', 'plain words'), 'application/octet-stream');
  t.equal(await typeOf('in-pieces', ...[...png].map((byte) => Uint8Array.of(byte))), 'image/png');
});

t.test('characters may lie across chunks in any way', async (t) => {
  const validText = fc.property(
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.array(fc.nat(8), { maxLength: 60 }),
    (string, cuts) => {
      const bytes = Buffer.from(string);
      const check = textCheck();
      let at = 0;
      for (const cut of cuts) {
        check.observe(bytes.subarray(at, at + cut));
        at += cut;
      }
      check.observe(bytes.subarray(at));
      return (check.problem() === null) === !string.includes('\0');
    },
  );
  t.doesNotThrow(() => fc.assert(validText));
});

t.test('text is what a strict decoder takes', async (t) => {
  const anyBytes = fc.property(fc.uint8Array({ maxLength: 12 }), fc.nat(12), (bytes, cut) => {
    const check = textCheck();
    check.observe(bytes.subarray(0, cut));
    check.observe(bytes.subarray(cut));
    let valid = !bytes.includes(0);
    try {
      new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      valid = false;
    }
    return (check.problem() === null) === valid;
  });
  t.doesNotThrow(() => fc.assert(anyBytes, { numRuns: 2000 }));
});

t.test('bytes that are no text say which encoding they seem to have', async (t) => {
  const text = 'Die Größe der Straße ändert sich für Gäste, die über Köln nach Süden fahren.';
  const shiftJis = Buffer.from('93fa967b8cea82cc83658340358358836783862082c582b78142', 'hex');
  const problemOf = (...chunks: Uint8Array[]) => {
    const check = textCheck();
    for (const chunk of chunks) check.observe(chunk);
    return check.problem();
  };
  t.equal(problemOf(Buffer.from(text)), null);
  t.match(problemOf(Buffer.from(text, 'latin1')), /^is not UTF-8 text; it seems to be (ISO-8859-1|windows-1252)$/);
  t.equal(problemOf(Buffer.from(text, 'utf16le')), 'is not UTF-8 text; it seems to be UTF-16LE');
  t.equal(problemOf(Buffer.from(text, 'utf16le').swap16()), 'is not UTF-8 text; it seems to be UTF-16BE');
  t.match(problemOf(shiftJis), /seems to be Shift_JIS$/);
  t.match(problemOf(Buffer.alloc(200_000, 'a'), Buffer.from(text, 'latin1')), /seems to be/, 'beyond the first bytes');
  t.equal(problemOf(Buffer.from('some words\0and more of them')), 'is not UTF-8 text');
  t.equal(problemOf(Buffer.from([0xe2, 0x82])) === null, false, 'half a character at the end');
});

t.test('the buffer of a chunk may be used again', async (t) => {
  const probe = mediaTypeProbe('picture');
  const shared = Buffer.from(png);
  probe.observe(shared);
  shared.fill(0);
  t.equal(await probe.mediaType(), 'image/png');
});

t.test('bytes have the signature of the type that is declared, and text has none of another', async (t) => {
  const found = async (bytes: Uint8Array) => {
    const probe = mediaTypeProbe('');
    probe.observe(bytes);
    return probe.mediaType();
  };
  const [picture, text, xml] = await Promise.all(
    [png, 'plain', '<?xml version="1.0"?><a/>'].map((b) => found(Buffer.from(b))),
  );
  const docx = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
  for (const [declared, bytes, fits] of [
    ['image/png', picture, true],
    ['image/jpeg', picture, false],
    ['text/csv', picture, false],
    ['application/octet-stream', picture, true],
    ['application/x-unknown', picture, true],
    ['image/png', text, false],
    ['application/pdf', text, false],
    ['text/plain', text, true],
    ['application/json', text, true],
    ['text/xml', xml, true],
    [docx, 'application/zip', true],
    [docx, text, false],
  ] as const) {
    t.equal(signatureProblem(declared, bytes ?? '') === null, fits, `${declared}, ${bytes}`);
  }
  t.match(signatureProblem('image/png', 'application/pdf'), /signature of image\/png/);
});
