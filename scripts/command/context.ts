import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { OwnerApi } from './api.ts';
import { CommandError, EXIT } from './errors.ts';
import type { Output } from './output.ts';

const fileSchema = z.object({
  scope: z.string(),
  path: z.string(),
});
export type ContextFile = z.output<typeof fileSchema>;

/** The published context, by whoever may read it. */
export type ContextReader = Readonly<{
  list: () => Promise<readonly ContextFile[]>;
  read: (file: ContextFile) => Promise<string>;
}>;

/** As a run was given it: the documents of its scopes among the inputs, as `context/{scope}/{path}`. */
export function contextOfRun(environment: NodeJS.ProcessEnv): ContextReader {
  const inputs = environment['INPUT_DIR'];
  const root = inputs ? path.join(inputs, 'context') : undefined;
  return {
    async list() {
      if (root === undefined) return [];
      const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => []);
      const files = entries.filter((entry) => entry.isFile());
      const names = files.map(({ parentPath, name }) => path.relative(root, path.join(parentPath, name)));
      return names.toSorted().flatMap((name) => {
        const [scope = '', ...rest] = name.split(path.sep);
        return rest.length === 0 ? [] : [{ scope, path: rest.join('/') }];
      });
    },
    read: (file) => readFile(path.join(root ?? '', file.scope, file.path), 'utf8'),
  };
}

const listSchema = z.looseObject({ items: z.array(z.looseObject(fileSchema.shape)) });

/** As an owner reads it. @param home of the organization: `/organizations/{id}` */
export function contextOfOrganization(api: OwnerApi, home: string): ContextReader {
  return {
    list: async () => (await api.get(listSchema, `${home}/context/files`)).items,
    read: (file) => api.text(`${home}/context/files/content?${new URLSearchParams(file)}`),
  };
}

/** @param name `{scope}/{path}`, or a path that one scope has. @throws CommandError */
export async function contextText(reader: ContextReader, name: string): Promise<string> {
  const files = await reader.list();
  const [one, second] = files.filter((file) => `${file.scope}/${file.path}` === name || file.path === name);
  if (second) throw new CommandError(EXIT.usage, `several scopes have ${name}: name it as context shows it`);
  if (one) return reader.read({ scope: one.scope, path: one.path });
  throw new CommandError(EXIT.notFound, `there is no document ${JSON.stringify(name)} in the context`);
}

export async function contextList(reader: ContextReader, output: Output): Promise<void> {
  const files = await reader.list();
  if (output.json) return output.value(files);
  if (files.length === 0) output.line('no documents');
  for (const file of files) output.line(`${file.scope}/${file.path}`);
}

export async function contextShow(reader: ContextReader, output: Output, name: string): Promise<void> {
  const text = await contextText(reader, name);
  if (output.json) output.value({ name, text });
  else output.text(text.endsWith('\n') ? text : `${text}\n`);
}
