import { z } from 'zod';
import { FILE_PATH_RULE, isFilePath, isSeen, layoutConflicts } from '../../engine/file_paths.ts';

/** A relative path with forward slashes, as inputs and outputs have. */
export const filePath = z.string().min(1).max(1000).refine(isFilePath, FILE_PATH_RULE);

/** A name that is no path: any characters but a slash and what people cannot see. */
export const fileName = z
  .string()
  .min(1, { abort: true })
  .refine((text) => [...text].length <= 255, 'must have at most 255 characters')
  .refine(
    (text) => !text.includes('/') && isSeen(text),
    'must be a name without slashes, controls and marks of bidirectional text',
  );

/** An issue for each path that cannot be laid out beside those before it; undefined stands for an item without a path. */
export function requireLayout(
  paths: readonly (string | undefined)[],
  context: z.RefinementCtx,
  given: Parameters<typeof layoutConflicts>[1] = {},
): void {
  const named = paths.flatMap((path, place) => (path === undefined ? [] : [{ path, place }]));
  const conflicts = layoutConflicts(
    named.map(({ path }) => path),
    given,
  );
  for (const { index, message } of conflicts) {
    context.addIssue({ code: 'custom', path: [named[index]?.place ?? 0, 'path'], message });
  }
}
