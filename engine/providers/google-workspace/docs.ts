import { z } from 'zod';
import { counted, quoted } from '../texts.ts';
import { covers } from './services.ts';
import { read, readJson, urlOf, write, writeJson } from './site.ts';

const documentId = z.string().regex(/^[A-Za-z0-9_-]{1,200}$/);

const paragraph = z.object({
  elements: z.array(z.object({ textRun: z.object({ content: z.string().optional() }).optional() })).default([]),
  paragraphStyle: z.object({ namedStyleType: z.string().optional() }).optional(),
  bullet: z.unknown().optional(),
});
type Cell = Readonly<{ content?: Block[] | undefined }>;
type Table = Readonly<{ tableRows: Readonly<{ tableCells: Cell[] }>[] }>;
type Block = Readonly<{ paragraph?: z.output<typeof paragraph> | undefined; table?: Table | undefined }>;
const cell: z.ZodType<Cell> = z.object({ content: z.array(z.lazy(() => block)).optional() });
const row = z.object({ tableCells: z.array(cell).default([]) });
const block: z.ZodType<Block> = z.object({
  paragraph: paragraph.optional(),
  table: z.object({ tableRows: z.array(row).default([]) }).optional(),
});
const tab = z.object({
  tabProperties: z.object({ tabId: z.string().optional(), title: z.string().optional() }).optional(),
  documentTab: z.object({ body: z.object({ content: z.array(block).default([]) }).optional() }).optional(),
  get childTabs(): z.ZodOptional<z.ZodArray<typeof tab>> {
    return z.array(tab).optional();
  },
});
type Tab = z.output<typeof tab>;
const document = z.object({
  documentId: z.string(),
  title: z.string().optional(),
  revisionId: z.string().optional(),
  tabs: z.array(tab).default([]),
});

/** Headings and lists as in Markdown, cells of a table in a line a row. */
function textOf(blocks: readonly Block[] = []): string {
  return blocks
    .map(({ paragraph: of, table }) => {
      if (table) {
        const rows = table.tableRows.map(({ tableCells }) =>
          tableCells.map(({ content }) => textOf(content).trim().replaceAll('\n', ' ')).join('\t'),
        );
        return `${rows.join('\n')}\n`;
      }
      if (!of) return '';
      const text = of.elements.map(({ textRun }) => textRun?.content ?? '').join('');
      const [, level] = /^HEADING_([1-6])$/.exec(of.paragraphStyle?.namedStyleType ?? '') ?? [];
      if (text.trim() === '') return text;
      return `${level === undefined ? '' : `${'#'.repeat(Number(level))} `}${of.bullet ? '- ' : ''}${text}`;
    })
    .join('');
}

type ShownTab = Readonly<{ tabId?: string | undefined; title?: string | undefined; text: string }>;

const shownTabs = (tabs: readonly Tab[] = []): ShownTab[] =>
  tabs.flatMap(({ tabProperties, documentTab, childTabs }) => [
    { ...tabProperties, text: textOf(documentTab?.body?.content) },
    ...shownTabs(childTabs),
  ]);

export const docs = [
  read({
    key: 'google_workspace.docs.documents.get',
    title: 'Read a document',
    description: 'Reads the text of a document, tab by tab.',
    scopes: covers.docsRead,
    input: { documentId },
    async read(call) {
      const query = { includeTabsContent: true, fields: 'documentId,title,revisionId,tabs' };
      const url = urlOf('docs', `/v1/documents/${call.args.documentId}`, query);
      const { tabs, ...data } = await readJson(call, 'docs', url, document);
      return { data: { ...data, tabs: shownTabs(tabs) } };
    },
  }),
  // Nothing in a document says who wrote it: no look-up.
  write({
    key: 'google_workspace.docs.documents.append',
    title: 'Write into a document',
    description: 'Adds text to the end of a document. Whoever it is shared with sees it.',
    risk: 'external',
    scopes: covers.docsWrite,
    input: { documentId, text: z.string().min(1).max(200_000) },
    summary: ({ args: { documentId: of, text } }) =>
      `Add ${counted([...text].length, 'character')} to the end of document ${of} (https://docs.google.com/document/d/${of}), for all whom it is shared with: ${quoted(text, 500)}`,
    async execute({ args: { documentId: of, text }, ...call }) {
      const body = { requests: [{ insertText: { endOfSegmentLocation: {}, text } }] };
      const url = urlOf('docs', `/v1/documents/${of}:batchUpdate`, { fields: 'documentId' });
      return writeJson(call, 'docs', { method: 'POST', url, body }, z.object({ documentId: z.string() }));
    },
  }),
];
