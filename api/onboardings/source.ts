import path from 'node:path';
import { z } from 'zod';
import { Problem } from '../../engine/db/problem.ts';
import { ATTACHMENT_MAX_BYTES, MEDIA_TYPE_OF, namedType } from '../chat_attachments/schema.ts';
import { fileName } from '../fields/file_path.ts';
import { invalid } from '../http/errors.ts';
import { department } from '../organizations/schema.ts';

/** 50 MB, as for attachments. */
export const SOURCE_MAX_BYTES = ATTACHMENT_MAX_BYTES;

/** The query of an upload. */
export const sourceQuery = {
  department: department
    .optional()
    .describe('The department that the evidence is for. Default: the whole organization.'),
  kind: z
    .enum(['file', 'markdown'])
    .describe('`file`: one of the supported types. `markdown`: any UTF-8 text, whatever its name.'),
  fileName: fileName.describe('A name without slashes. At most 255 characters.'),
  mediaType: z
    .string()
    .min(1)
    .max(300)
    .describe('The media type of the file. 400 if it does not match the file name and the bytes.'),
};
const querySchema = z.object(sourceQuery);
export type SourceQuery = z.output<typeof querySchema>;

const unsupported = (message: string) => new Problem(415, 'request_failed', message);

/**
 * The type that kind and name stand for.
 * @throws Problem 415 for types that are no source, 400 when name and type are allowed and do not agree
 */
export function sourceType({ kind, fileName, mediaType }: SourceQuery): string {
  const given = namedType({ fileName, mediaType });
  const named = MEDIA_TYPE_OF[path.extname(fileName).toLowerCase()];
  if (kind === 'markdown') {
    const texts = ['text/markdown', 'text/plain'];
    if (given === undefined || !texts.includes(given) || (named !== undefined && !texts.includes(named))) {
      throw unsupported('A source of kind markdown is text/markdown or text/plain; send others as kind file.');
    }
    return 'text/markdown';
  }
  if (named === undefined) {
    throw unsupported(`A source is a file with one of the extensions ${Object.keys(MEDIA_TYPE_OF).join(', ')}.`);
  }
  if (given === undefined || !Object.values(MEDIA_TYPE_OF).includes(given)) {
    throw unsupported('This media type is not taken as a source.');
  }
  if (given !== named) throw invalid('mediaType', `does not agree with the file name, which stands for ${named}`);
  return named;
}

/** The name that the type of the bytes is determined by: markdown is text, whatever it is called. */
export function judgedName({ kind, fileName }: SourceQuery): string {
  return kind === 'markdown' ? `${fileName}.md` : fileName;
}
