import { randomUUID } from 'node:crypto';
import type { ToolFile } from '../tool.ts';

// Messages by RFC 5322 and MIME, made as they are sent. Nothing that is given gets into a header but what cannot end it: addresses that
// a schema has read, and texts that are encoded where they hold anything but plain characters.

const CRLF = '\r\n';
/** Of an encoded word, which has at most 75 characters (RFC 2047, 2). */
const WORD_BYTES = 45;
/** A line of base64 (RFC 2045, 6.8) and the bytes that it holds. */
const LINE_CHARACTERS = 76;
const LINE_BYTES = 57;
/** Of a parameter that goes on (RFC 2231, 3). */
const SECTION_CHARACTERS = 54;
const LONGEST_PLAIN = 900;

export type Message = Readonly<{
  to: readonly string[];
  cc?: readonly string[] | undefined;
  bcc?: readonly string[] | undefined;
  subject: string;
  body: string;
  /** `<…>` of the message that this one replies to. */
  inReplyTo?: string | undefined;
  /** Without its angle brackets. */
  messageId: string;
  attachments: readonly Pick<ToolFile, 'name' | 'contentType' | 'sizeBytes' | 'open'>[];
}>;

/** Bytes whose number is known before they are made. */
export type Sized = Readonly<{ sizeBytes: number; chunks: AsyncIterable<Uint8Array> }>;

/** Text of a header (RFC 2047): as it is where that is plain, else as encoded words. */
export function headerText(text: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.includes('=?');
  if (text === '' || (isPlain && text.length <= LONGEST_PLAIN)) return text;
  const words: string[] = [];
  let word = '';
  for (const character of text) {
    if (Buffer.byteLength(word + character) > WORD_BYTES) {
      words.push(word);
      word = '';
    }
    word += character;
  }
  words.push(word);
  return words.map((one) => `=?UTF-8?B?${Buffer.from(one).toString('base64')}?=`).join(`${CRLF} `);
}

/** A parameter of a header: quoted where that is enough, else by RFC 2231, in sections where it is long. */
export function headerParameter(name: string, value: string): string {
  if (/^[\x20-\x7e]{1,60}$/.test(value) && !/["\\]/.test(value)) return `${name}="${value}"`;
  const encoded = [...Buffer.from(value)].map((byte) => {
    const character = String.fromCharCode(byte);
    return /[A-Za-z0-9._-]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  });
  const sections = [''];
  for (const one of encoded) {
    const last = sections.at(-1) ?? '';
    if (last.length + one.length > SECTION_CHARACTERS) sections.push(one);
    else sections[sections.length - 1] = last + one;
  }
  const [only = '', ...more] = sections;
  if (more.length === 0) return `${name}*=UTF-8''${only}`;
  return sections
    .map((section, index) => `${name}*${index}*=${index === 0 ? "UTF-8''" : ''}${section}`)
    .join(`;${CRLF} `);
}

/** What an attachment says that it is. What is made of parts or messages must not be in base64 (RFC 2045, 6.4). */
function mediaType(contentType: string): string {
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
  const isKnown = /^[a-z]+\/[a-z0-9][a-z0-9.+-]{0,126}$/.test(type) && !/^(?:multipart|message)\//.test(type);
  return isKnown ? type : 'application/octet-stream';
}

/** How long bytes are as lines of base64, each with its end. */
function base64Length(bytes: number): number {
  const characters = 4 * Math.ceil(bytes / 3);
  return characters + CRLF.length * Math.ceil(characters / LINE_CHARACTERS);
}

const lines = (bytes: Buffer) => bytes.toString('base64').replace(/.{1,76}/g, `$&${CRLF}`);

async function* base64Lines(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of source) {
    const bytes = Buffer.concat([rest, chunk]);
    const whole = bytes.length - (bytes.length % LINE_BYTES);
    rest = bytes.subarray(whole);
    if (whole > 0) yield Buffer.from(lines(bytes.subarray(0, whole)), 'latin1');
  }
  if (rest.length > 0) yield Buffer.from(lines(rest), 'latin1');
}

type Piece = string | Message['attachments'][number];

function sized(pieces: readonly Piece[]): Sized {
  async function* chunks(): AsyncGenerator<Uint8Array, void, void> {
    for (const piece of pieces) {
      if (typeof piece === 'string') yield Buffer.from(piece);
      else yield* base64Lines(await piece.open());
    }
  }
  const lengths = pieces.map((one) => (typeof one === 'string' ? Buffer.byteLength(one) : base64Length(one.sizeBytes)));
  return { sizeBytes: lengths.reduce((sum, length) => sum + length, 0), chunks: chunks() };
}

const block = (fields: readonly string[]) => fields.map((field) => field + CRLF).join('');
const addresses = (name: string, list: readonly string[] = []) =>
  list.length === 0 ? [] : [`${name}: ${list.join(`,${CRLF} `)}`];

function piecesOf(message: Message): Piece[] {
  const { inReplyTo, attachments } = message;
  const head = block([
    ...addresses('To', message.to),
    ...addresses('Cc', message.cc),
    ...addresses('Bcc', message.bcc),
    `Subject: ${headerText(message.subject)}`,
    `Message-ID: <${message.messageId}>`,
    ...(inReplyTo === undefined ? [] : [`In-Reply-To: ${inReplyTo}`, `References: ${inReplyTo}`]),
    'MIME-Version: 1.0',
  ]);
  const text = [
    block(['Content-Type: text/plain; charset=UTF-8', 'Content-Transfer-Encoding: base64', '']),
    lines(Buffer.from(message.body)),
  ];
  if (attachments.length === 0) return [head, ...text];
  // No base64 holds it, and nobody can know it before.
  const boundary = `=_${randomUUID()}`;
  return [
    head,
    block([`Content-Type: multipart/mixed;${CRLF} boundary="${boundary}"`, '', `--${boundary}`]),
    ...text,
    ...attachments.flatMap((file): Piece[] => [
      block([
        `--${boundary}`,
        `Content-Type: ${mediaType(file.contentType)}`,
        `Content-Disposition: attachment;${CRLF} ${headerParameter('filename', file.name)}`,
        'Content-Transfer-Encoding: base64',
        '',
      ]),
      file,
    ]),
    block([`--${boundary}--`]),
  ];
}

/** The message as Google's uploads take it: with what is said about it, as the two parts of one body. */
export function upload(metadata: unknown, message: Message): Sized & Readonly<{ contentType: string }> {
  const boundary = `=_${randomUUID()}`;
  const body = sized([
    block([`--${boundary}`, 'Content-Type: application/json; charset=UTF-8', '', JSON.stringify(metadata)]),
    block([`--${boundary}`, 'Content-Type: message/rfc822', '']),
    ...piecesOf(message),
    block(['', `--${boundary}--`]),
  ]);
  return { ...body, contentType: `multipart/related; boundary="${boundary}"` };
}
