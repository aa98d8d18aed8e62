import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, readlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestApp } from './app.ts';

/** What lies where no request may get. */
export const SECRET = 'bytes that are nobody’s to read';

export const storageFolder = (app: TestApp) => fileURLToPath(app.config.storageUrl);
export const folderOf = (app: TestApp, organizationId: string) =>
  path.join(storageFolder(app), 'organizations', organizationId);

/** Puts the secret beside the storage, into it, and among the organizations. @returns its absolute path */
export async function layOut(app: TestApp): Promise<string> {
  const files = storageFolder(app);
  await mkdir(path.join(files, 'organizations'), { recursive: true });
  const beside = path.join(path.dirname(files), 'secret.txt');
  for (const org of [beside, path.join(files, 'secret.txt'), path.join(files, 'organizations', 'secret.txt')]) {
    await writeFile(org, SECRET);
  }
  return beside;
}

/** All that lies below a folder: each file with its digest, each link with where it leads; save for `inside`. */
export async function treeOf(root: string, inside?: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(root, { withFileTypes: true })) {
    const org = path.join(root, entry.name);
    if (org === inside) continue;
    if (entry.isSymbolicLink()) found.push(`${org} → ${await readlink(org)}`);
    else if (entry.isDirectory()) found.push(`${org}/`, ...(await treeOf(org, inside)));
    else
      found.push(
        `${org} ${createHash('sha256')
          .update(await readFile(org))
          .digest('hex')}`,
      );
  }
  return found.sort();
}

/** What lies in the storage and beside it, save for the folder of one organization. */
export const around = (app: TestApp, inside: string) => treeOf(path.dirname(storageFolder(app)), inside);

/** Paths that lead out of their folder, or are none: nothing that takes a path takes them. */
export function leavingPaths(absolute: string): string[] {
  const up = [1, 2, 3, 4, 5, 6, 7].map((levels) => `${'../'.repeat(levels)}secret.txt`);
  const deep = up.map((text) => `a/${text}`);
  return [
    ...[...up, ...deep],
    ...['.', '..', 'a/..', 'a/.', './secret.txt', 'a/../secret.txt', '/', '//', 'a//b'],
    ...[absolute, '/etc/passwd', '//etc/passwd', '/../secret.txt', `file://${absolute}`],
    ...[
      '..\\secret.txt',
      '..\\..\\secret.txt',
      'a\\..\\..\\secret.txt',
      'C:\\secret.txt',
      '\\\\host\\secret.txt',
      '\\',
    ],
    ...['a.txt\0', '\0', `${absolute}\0`, '../secret.txt\0.txt', 'a\0/../secret.txt', 'a\n.txt'],
  ];
}

/** Names that look like such paths, and are names to those that take any: what becomes of them stays inside. */
export function oddNames(absolute: string): string[] {
  const encoded = ['%2e%2e%2fsecret.txt', '..%2fsecret.txt', '%2fetc%2fpasswd', '..%5csecret.txt', 'a.txt%00'];
  return [
    ...[...encoded, encodeURIComponent(encodeURIComponent(`../..${absolute}`)), '%c0%ae%c0%ae%c0%afsecret.txt'],
    ...[
      'a.txt/',
      'a.txt.',
      'a.txt..',
      'a.txt. ',
      '...',
      '.../secret.txt',
      '..../secret.txt',
      '. ./secret.txt',
      '.. /secret.txt',
    ],
    ...['.incoming', '.incoming/a.txt', 'organizations/secret.txt', 'secret.txt', '~/secret.txt', '$HOME/secret.txt'],
    ...['．．／secret.txt', '‥/secret.txt', 'a.txt::$DATA', 'NUL', 'con.txt', 'C:secret.txt', '-rf'],
  ];
}
