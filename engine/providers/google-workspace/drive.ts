import { z } from 'zod';
import { ProviderError } from '../outgoing/index.ts';
import { quoted } from '../texts.ts';
import type { LookUpResult } from '../tool.ts';
import { covers } from './services.ts';
import { KEY, openStream, type Read, read, readJson, readPage, urlOf, type Write, write } from './site.ts';
import { UPLOADED_FIELDS, uploaded, uploadFile } from './upload.ts';
import { sizeText } from './wording.ts';

const FILES = '/drive/v3/files';
const MARKER = 'businessRunnerAction';
const MAX_FILE_BYTES = 1024 ** 3;

const id = z.string().regex(/^[A-Za-z0-9_-]{1,200}$/);
const mimeType = z.string().regex(/^[a-z]+\/[A-Za-z0-9][A-Za-z0-9.+-]{0,126}$/);
const name = z
  .string()
  .min(1)
  .max(500)
  .regex(/^[^\p{Cc}]*$/u, 'must be one line');
const parents = z.array(id).max(1).optional().describe('the folder; without it My Drive');

const facts = z.object({
  id: z.string(),
  name: z.string(),
  mimeType: z.string(),
  size: z.string().optional(),
  modifiedTime: z.string().optional(),
  webViewLink: z.string().optional(),
  md5Checksum: z.string().optional(),
});
const FACTS = Object.keys(facts.shape).join(',');
const SHOWN = `${FACTS},createdTime,parents,description,starred,trashed,shared,owners(displayName,emailAddress)`;
const files = z.object({
  files: z.array(z.looseObject({ id: z.string() })).default([]),
  nextPageToken: z.string().optional(),
  incompleteSearch: z.boolean().optional(),
});

const GOOGLE = 'application/vnd.google-apps.';
/** What has no bytes of its own is exported: as this where nobody says otherwise. */
const EXPORTS: Readonly<Record<string, string>> = {
  document: 'text/markdown',
  spreadsheet: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  presentation: 'application/pdf',
  drawing: 'image/png',
  script: 'application/vnd.google-apps.script+json',
};
const EXTENSIONS: Readonly<Record<string, string>> = {
  'text/markdown': 'md',
  'text/plain': 'txt',
  'text/html': 'html',
  'text/csv': 'csv',
  'text/tab-separated-values': 'tsv',
  'application/pdf': 'pdf',
  'application/rtf': 'rtf',
  'application/epub+zip': 'epub',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'pptx',
  'application/vnd.google-apps.script+json': 'json',
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/svg+xml': 'svg',
};

/** What a text is that becomes a document of Google. */
const SOURCES: Readonly<Record<string, string>> = {
  [`${GOOGLE}document`]: 'text/markdown',
  [`${GOOGLE}spreadsheet`]: 'text/csv',
};

type Found = z.output<typeof facts>;

/** What of the file is read, under which name. @throws ProviderError */
function contentOf(found: Found, wanted: string | undefined) {
  const path = `${FILES}/${found.id}`;
  if (!found.mimeType.startsWith(GOOGLE)) {
    if (Number(found.size ?? 0) > MAX_FILE_BYTES) {
      throw new ProviderError(KEY, 'too_large', 'The file is larger than 1 GiB.');
    }
    const url = urlOf('drive', path, { alt: 'media', supportsAllDrives: true });
    return { url, name: found.name, contentType: found.mimeType };
  }
  const contentType = wanted ?? EXPORTS[found.mimeType.slice(GOOGLE.length)];
  // A folder, a shortcut, a form.
  if (contentType === undefined) {
    throw new ProviderError(KEY, 'not_found', 'What the id names has no content that could be read.');
  }
  const extension = EXTENSIONS[contentType];
  const url = urlOf('drive', `${path}/export`, { mimeType: contentType });
  return { url, name: extension === undefined ? found.name : `${found.name}.${extension}`, contentType };
}

async function readFile(call: Read<Readonly<{ fileId: string; mimeType?: string | undefined }>>) {
  const query = { fields: FACTS, supportsAllDrives: true };
  const found = await readJson(call, 'drive', urlOf('drive', `${FILES}/${call.args.fileId}`, query), facts);
  const { url, ...file } = contentOf({ ...found, id: call.args.fileId }, call.args.mimeType);
  const { body } = await openStream(call, 'drive', url);
  return { data: found, file: { ...file, body } };
}

const placeText = (folders: readonly string[] | undefined) =>
  folders?.[0] === undefined ? 'My Drive' : `folder ${folders[0]} of Drive`;

/** Search is not at once complete: what it does not show may be there. */
async function findMarked(call: Write): Promise<LookUpResult> {
  const q = `appProperties has { key='${MARKER}' and value='${call.actionId}' }`;
  const query = { q, fields: `files(${UPLOADED_FIELDS})`, supportsAllDrives: true, includeItemsFromAllDrives: true };
  const found = await readJson(call, 'drive', urlOf('drive', FILES, query), z.object({ files: z.array(uploaded) }));
  const [first] = found.files;
  return first === undefined ? { outcome: 'none' } : { outcome: 'found', result: first };
}

const marker = ({ actionId }: Write) => ({ appProperties: { [MARKER]: actionId } });

export const drive = [
  read({
    key: 'google_workspace.drive.files.list',
    title: 'Find files',
    description: 'Lists files that match a query of Drive.',
    scopes: covers.driveRead,
    input: {
      q: z.string().max(1_000).optional().describe("as in the API: name contains 'plan' and trashed = false"),
      orderBy: z
        .string()
        .regex(/^[A-Za-z_]{1,40}(?: desc)?(?:,[A-Za-z_]{1,40}(?: desc)?){0,3}$/)
        .optional(),
      pageSize: z.int().min(1).max(200).optional(),
    },
    async read(call) {
      const fields = `nextPageToken,incompleteSearch,files(${SHOWN})`;
      const query = { ...call.args, fields, supportsAllDrives: true, includeItemsFromAllDrives: true };
      const { nextPageToken, ...data } = await readPage(call, 'drive', urlOf('drive', FILES, query), files);
      return { data, nextCursor: nextPageToken };
    },
  }),
  read({
    key: 'google_workspace.drive.files.get',
    title: 'Read a file',
    description: 'Reads the content of a file. Documents of Google are exported.',
    scopes: covers.driveRead,
    input: {
      fileId: id,
      mimeType: mimeType
        .optional()
        .describe('what a document of Google is exported as; by default Markdown, xlsx or PDF'),
    },
    read: readFile,
  }),
  write({
    key: 'google_workspace.drive.files.create',
    title: 'Create a file',
    description: 'Creates a text file, or from Markdown a document of Google, from CSV a spreadsheet.',
    risk: 'low',
    scopes: covers.driveWrite,
    input: { name, mimeType, content: z.string().max(500_000), parents },
    // Others may see what is in a folder.
    riskOf: (args) => (args.parents === undefined ? 'low' : 'external'),
    summary: ({ args }) =>
      `Create the file ${quoted(args.name)} (${args.mimeType}) in ${placeText(args.parents)}; text: ${quoted(args.content, 300)}`,
    execute(call) {
      const { content, ...metadata } = call.args;
      const bytes = Buffer.from(content);
      const file = {
        contentType: SOURCES[metadata.mimeType] ?? metadata.mimeType,
        sizeBytes: bytes.length,
        open: async () =>
          (async function* () {
            yield bytes;
          })(),
      };
      return uploadFile(call, { ...metadata, ...marker(call) }, file);
    },
    lookUp: findMarked,
  }),
  write({
    key: 'google_workspace.drive.files.upload',
    title: 'Upload a file',
    description:
      'Uploads a file. Files: file. It has to end within the time-out of the call: 1 GiB in 60 s takes a connection of 150 Mbit/s.',
    risk: 'external',
    scopes: covers.driveWrite,
    input: { name: name.optional().describe('without it that of the file'), parents },
    files: { file: { required: true, maxBytes: MAX_FILE_BYTES } },
    summary({ args, files: { file } }) {
      const what = file === undefined ? '' : ` ${quoted(file.name)} (${file.contentType}, ${sizeText(file.sizeBytes)})`;
      return `Upload the file${what} to ${placeText(args.parents)}${args.name === undefined ? '' : ` as ${quoted(args.name)}`}; whoever the folder is shared with sees it`;
    },
    execute(call) {
      const { file } = call.files;
      if (!file) throw new ProviderError(KEY, 'failed', 'There is no file to upload.', { isRefusal: true });
      const contentType = mimeType.safeParse(file.contentType).data ?? 'application/octet-stream';
      const metadata = { name: call.args.name ?? file.name, parents: call.args.parents, mimeType: contentType };
      return uploadFile(call, { ...metadata, ...marker(call) }, { ...file, contentType });
    },
    lookUp: findMarked,
  }),
];
