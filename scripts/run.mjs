// Runs one process of the service, as servers do: plain JavaScript, so that an older Node says which one is needed, where the
// TypeScript itself would end with a stack.
const NODE_NEEDED = 24;
const EX_USAGE = 64;
const EX_CONFIG = 78;
const PARTS = { api: '../api/main.ts', jobs: '../jobs/main.ts', migrate: './migrate.ts' };
const USAGE = `node scripts/run.mjs ${Object.keys(PARTS).join('|')}: the API, the jobs, or the migration of the database; --help after it says more`;

const part = process.argv[2] ?? '';

function end(text, status) {
  process.stderr.on('error', () => {});
  process.stderr.write(`${text}\n`);
  process.exitCode = status;
}

if (Number.parseInt(process.versions.node, 10) < NODE_NEEDED) {
  end(
    `Node.js ${NODE_NEEDED} or newer is needed, this is ${process.versions.node}: install it, or use npx node, which finds the one among the packages`,
    EX_CONFIG,
  );
} else if (!Object.hasOwn(PARTS, part)) end(USAGE, EX_USAGE);
else {
  // The part reads its own arguments.
  process.argv.splice(2, 1);
  await import(new URL(PARTS[part], import.meta.url));
}
