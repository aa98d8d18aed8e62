import t from 'tap';
import { isFilePath, layoutConflicts, layoutKey } from '../../engine/file_paths.ts';

t.test('a path is relative and plain', async (t) => {
  for (const path of [
    'a',
    'a/b.txt',
    'Größe 日本/…',
    '.gitignore',
    '.github/x',
    'a.git/b',
    'git',
    '.gitlab',
    '-',
    'C:x',
  ]) {
    t.ok(isFilePath(path), path);
  }
  for (const path of ['', '/', '/a', 'a/', 'a//b', '.', '..', 'a/../b', './a', 'a\\b', 'a\0', 'a\nb', 'x\ud800']) {
    t.notOk(isFilePath(path), encodeURIComponent(path.toWellFormed()));
  }
});

t.test('what people cannot see is no part of a path', async (t) => {
  for (const mark of [
    '\u202e',
    '\u202a',
    '\u2066',
    '\u2069',
    '\u200e',
    '\u200f',
    '\u061c',
    '\u2028',
    '\u2029',
    '\u0085',
  ]) {
    t.notOk(isFilePath(`invoice_${mark}gpj.exe`), encodeURIComponent(mark));
  }
});

t.test('no file of a repository is named, however it is spelt', async (t) => {
  for (const name of [
    '.git',
    '.GIT',
    '.Git',
    '.git.',
    '.git ',
    '.git..',
    'git~1',
    'GIT~1',
    '.g\u200cit',
    '\ufeff.git',
  ]) {
    for (const path of [name, `${name}/hooks/pre-commit`, `a/${name}`, `a/${name}/config`]) {
      t.notOk(isFilePath(path), encodeURIComponent(path.toWellFormed()));
    }
  }
});

t.test('case and normalization make no other file', async (t) => {
  t.equal(layoutKey('Gro\u0308\u00dfe/A'), layoutKey('gr\u00f6\u00dfe/a'));
  t.equal(layoutKey('\u212b'), layoutKey('a\u030a'), 'the sign of the \u00e5ngstr\u00f6m is its letter');
  t.not(layoutKey('\u2460.txt'), layoutKey('1.txt'), 'what only looks alike is another one');
});

const found = (...[paths, given]: Parameters<typeof layoutConflicts>) =>
  layoutConflicts(paths, given).map(({ index, kind, message }) => `${index} ${kind}: ${message}`);

t.test('paths that cannot lie beside each other are found, each once, at the later one', async (t) => {
  t.same(found(['a', 'b/c', 'b/d', 'ab', 'b.c', 'b-c/d']), []);
  t.same(found(['a', 'a/b', 'a/c']), ['1 below: lies below the file a', '2 below: lies below the file a']);
  t.same(found(['a/b/c', 'x', 'a']), ['2 below: is a folder for a/b/c']);
  t.same(found(['a', 'A']), ['1 same: is the same file as a on many file systems']);
  t.same(found(['A/x', 'a/x', 'a/y']), ['1 same: is the same file as A/x on many file systems']);
  t.same(found(['a', 'A/b']), ['1 below: lies below the file a']);
  t.same(found(['e\u0301', '\u00e9']), ['1 same: is the same file as e\u0301 on many file systems']);
  t.same(found(['a', 'b', 'a', 'a']), ['2 same: is named twice', '3 same: is named twice']);
  t.same(found(['a', 'a-b', 'a.b', 'a/b']), ['3 below: lies below the file a'], 'whatever sorts between them');
});

t.test('files and folders that are there already count', async (t) => {
  const given = { taken: ['task.json', 'x/y'], folders: ['outputs', 'context'] };
  t.same(found(['outputs/a', 'context/a/b', 'Task.txt', 'x/z'], given), []);
  t.same(found(['Task.JSON', 'task.json/a', 'Outputs', 'x', 'x/y/z'], given), [
    '0 same: is the same file as task.json on many file systems',
    '1 below: lies below the file task.json',
    '2 below: is the name of a folder that every run has',
    '3 below: is a folder for x/y',
    '4 below: lies below the file x',
  ]);
});

t.test('many deep paths are compared in no time', async (t) => {
  const paths = Array.from({ length: 1_000 }, (_, n) => `${'a/'.repeat(495)}${n}`);
  const start = process.cpuUsage();
  t.same(found(paths), []);
  t.ok(process.cpuUsage(start).user < 2_000_000);
});
