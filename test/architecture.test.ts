import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { functions } from '../engine/db/generated/functions.ts';

const root = path.resolve(import.meta.dirname, '..');

/** What each part may import of the others (the API and the jobs meet in the database alone). */
const allowed: Readonly<Record<string, readonly string[]>> = {
  engine: ['engine'],
  api: ['api', 'engine'],
  jobs: ['jobs', 'engine'],
};

const importFormat =
  /(?:^|\n)\s*(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]|\bimport\s*\(\s*['"]([^'"]+)['"]|(?:^|\n)\s*import\s*['"]([^'"]+)['"]/g;

async function sources(part: string): Promise<string[]> {
  const names = await readdir(path.join(root, part), { recursive: true }).catch(() => []);
  return names.filter((name) => /\.[mc]?[jt]s$/.test(name)).map((name) => path.join(part, name));
}

async function imports(file: string): Promise<string[]> {
  const text = await readFile(path.join(root, file), 'utf8');
  return [...text.matchAll(importFormat)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
}

t.test('the check finds every form of import', async (t) => {
  const text = `import a from './a.ts';\nimport { b,\n c } from "./b.ts";\nexport * from './c.ts';\nimport './d.ts';\nawait import('./e.ts');\nimport type { F } from './f.ts';`;
  const found = [...text.matchAll(importFormat)].map((match) => match[1] ?? match[2] ?? match[3]);
  t.same(found.sort(), ['./a.ts', './b.ts', './c.ts', './d.ts', './e.ts', './f.ts']);
});

for (const [part, parts] of Object.entries(allowed)) {
  t.test(`${part} imports nothing but ${parts.join(' and ')} and packages`, async (t) => {
    const files = await sources(part);
    t.ok(files.length > 0);
    for (const file of files) {
      for (const specifier of await imports(file)) {
        if (!specifier.startsWith('.')) continue;
        const target = path.normalize(path.join(path.dirname(file), specifier)).split(path.sep)[0] ?? '';
        // package.json and its like stand above the parts.
        const fine = parts.includes(target) || target.endsWith('.json');
        t.ok(fine, `${file} imports ${specifier}`);
      }
    }
  });
}

/** A cycle of imports as the files along it, the first one repeated at the end; undefined where there is none. */
function findCircle(graph: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>();
  const path: string[] = [];
  function visit(file: string): string[] | undefined {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    path.push(file);
    for (const imported of graph.get(file) ?? []) {
      const cycle = visit(imported);
      if (cycle) return cycle;
    }
    path.pop();
    done.add(file);
    return undefined;
  }
  for (const file of graph.keys()) {
    const cycle = visit(file);
    if (cycle) return cycle;
  }
  return undefined;
}

t.test('the search finds a cycle wherever it begins, and none where imports only meet', async (t) => {
  const graph = (edges: Readonly<Record<string, string[]>>) => new Map(Object.entries(edges));
  t.same(findCircle(graph({ a: ['b', 'c'], b: ['c'], c: ['d'], d: ['b'] })), ['b', 'c', 'd', 'b']);
  t.same(findCircle(graph({ a: ['a'] })), ['a', 'a']);
  t.equal(findCircle(graph({ a: ['b', 'c'], b: ['d'], c: ['d'], d: [] })), undefined);
});

t.test('no files import each other in a cycle, not even types', async (t) => {
  const graph = new Map<string, readonly string[]>();
  for (const part of ['engine', 'api', 'jobs', 'scripts', 'test']) {
    for (const file of await sources(part)) {
      const local = (await imports(file)).filter((specifier) => specifier.startsWith('.'));
      graph.set(
        file,
        local.map((specifier) => path.normalize(path.join(path.dirname(file), specifier))),
      );
    }
  }
  t.ok(graph.size > 500);
  t.equal(findCircle(graph)?.join(' -> '), undefined);
});

/** What takes a second to load, and most processes never need: the administration's first request loads it. */
const LATE = ['graphql', 'postgraphile', 'postgraphile-plugin-connection-filter', 'ruru'];
const loadedFormat = /(?:^|\n)\s*(?:import|export)\b(?!\s+type\b)[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]/g;

t.test('no process loads the GraphQL of the administration when it starts', async (t) => {
  for (const main of ['api/main.ts', 'jobs/main.ts']) {
    const files = [main];
    // Grows while it is walked through.
    for (const file of files) {
      const text = await readFile(path.join(root, file), 'utf8');
      for (const [, specifier = ''] of text.matchAll(loadedFormat)) {
        const target = path.join(path.dirname(file), specifier);
        if (!specifier.startsWith('.')) t.notOk(LATE.includes(specifier.split('/')[0] ?? ''), `${file}: ${specifier}`);
        else if (target.endsWith('.ts') && !files.includes(target)) files.push(target);
      }
    }
    t.ok(files.length > 30, main);
  }
});

/** What opens connections or resolves names: modules with what is taken from them, and calls. */
const networkFormat =
  /(?:^|\n)\s*import\s+(?!type\b)([^'"`;]*?)\bfrom\s*'((?:node:)?(?:net|tls|https?|http2|dgram|dns|dns\/promises)|undici)'|import\(\s*'((?:node:)?(?:net|tls|https?|http2|dgram|dns|dns\/promises)|undici)'|(?<![\w.])(fetch|createWebClient|openChecked)\(/g;

function networkIn(text: string): string[] {
  return [...text.matchAll(networkFormat)].map(([, names = '', module, late, call]) => {
    const values = names.match(/\b(?<!type )(?!type\b)\w+/g) ?? [];
    return call ?? late ?? `${module}: ${values.join(', ')}`;
  });
}

t.test('the check finds what opens a connection', async (t) => {
  const text = `import { type Socket, connect } from 'node:net';\nimport type { Dispatcher } from 'undici';
    await import('node:dns/promises'); await fetch(url); client.fetch(url); prefetch(url); createWebClient({});`;
  t.same(networkIn(text), ['node:net: connect', 'node:dns/promises', 'fetch', 'createWebClient']);
});

t.test('no provider connects past the client, whose guard connects to the address that it has checked', async (t) => {
  const found: Record<string, string[]> = {};
  for (const file of await sources('engine')) {
    if (!/^engine.(?:providers|integrations)\b/.test(file)) continue;
    const network = networkIn(await readFile(path.join(root, file), 'utf8'));
    if (network.length > 0) found[file.split(path.sep).join('/')] = network;
  }
  t.same(found, {
    // The driver connects through it, and it by the client: it listens on loopback.
    'engine/providers/mongodb/socks_proxy.ts': ['node:net: createServer'],
    'engine/providers/outgoing/client.ts': ['createWebClient', 'openChecked'],
  });
});

t.test('only the configuration reads the environment', async (t) => {
  for (const part of Object.keys(allowed)) {
    for (const file of await sources(part)) {
      if (file === path.join('engine', 'config.ts')) continue;
      const text = await readFile(path.join(root, file), 'utf8');
      t.notMatch(text, /process\.env\b/, file);
    }
  }
});

/** `app.<name>(` and `"app"."<name>"(`, whatever is between. */
const callFormat = /\bapp"?\s*\.\s*"?(\w+)"?\s*\(/g;

function functionsCalledIn(text: string): string[] {
  return [...text.matchAll(callFormat)].map((match) => match[1] ?? '');
}

t.test('the check finds calls of functions in the text of a statement', async (t) => {
  const text = 'select app.one(1), "app"."two" (2) from app.three, app.\nfour($1) where my_app.five(5)';
  t.same(functionsCalledIn(text), ['one', 'two', 'four']);
});

t.test(
  'no text calls a function of the database: engine/db/function_call.ts and function_text.ts type each call',
  async (t) => {
    const files = await readdir(path.join(root, 'sql', 'functions'), { recursive: true });
    const inside = files.filter((name) => name.endsWith('.sql')).map((name) => path.basename(name, '.sql'));
    t.ok(inside.length > 100);
    const callable: readonly string[] = Object.keys(functions);
    const product = [...(await sources('engine')), ...(await sources('api')), ...(await sources('jobs'))];
    // Tests, measurements and the documentation look inside too: there what no login may call stays text.
    for (const file of [...product, ...(await sources('scripts')), ...(await sources('test'))]) {
      // It says what the texts of calls are.
      if (file === path.join('test', 'engine', 'db', 'function_call.test.ts')) continue;
      const looksInside = file.startsWith('test') || file.startsWith('scripts');
      const text = await readFile(path.join(root, file), 'utf8');
      const called = functionsCalledIn(text).filter((name) => (looksInside ? callable : inside).includes(name));
      t.same(called, [], file);
    }
  },
);

t.test('one file names the channels, and triggers alone note whom a change wakes', async (t) => {
  const product = [...(await sources('engine')), ...(await sources('api')), ...(await sources('jobs'))];
  const naming = [];
  for (const file of product) {
    if (/runner_(?:pull|chat)\b/.test(await readFile(path.join(root, file), 'utf8'))) naming.push(file);
  }
  t.same(naming, [path.join('engine', 'db', 'channels.ts')]);
  const functionFiles = await readdir(path.join(root, 'sql', 'functions'), { recursive: true });
  for (const name of functionFiles.filter((file) => file.endsWith('.sql'))) {
    t.notMatch(await readFile(path.join(root, 'sql', 'functions', name), 'utf8'), /perform app\.wake\(/, name);
  }
});
