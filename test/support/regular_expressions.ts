import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { type AST, RegExpParser } from '@eslint-community/regexpp';
import { type Node, parse } from 'acorn';

const ROOT = path.resolve(import.meta.dirname, '../..');

export type Found = Readonly<{ place: string; file: string; expression: RegExp }>;
/** An expression that is composed: what the code says, in place of the expression. */
export type Composed = Readonly<{ file: string; code: string }>;

function* nodesOf(value: unknown): Generator<Node> {
  if (typeof value !== 'object' || value === null || value instanceof RegExp) return;
  if ('type' in value && typeof value.type === 'string') yield value as Node;
  for (const part of Array.isArray(value) ? value : Object.values(value)) yield* nodesOf(part);
}

/** Every regular expression of the modules, by the syntax tree. */
export function expressionsOf(pattern: string): { found: Found[]; composed: Composed[] } {
  const found: Found[] = [];
  const composed: Composed[] = [];
  for (const file of globSync(pattern, { cwd: ROOT }).sort()) {
    const text = readFileSync(path.join(ROOT, file), 'utf8');
    const code = file.endsWith('.ts') ? stripTypeScriptTypes(text) : text;
    const tree = parse(code, { ecmaVersion: 'latest', sourceType: 'module', locations: true, allowHashBang: true });
    for (const node of nodesOf(tree)) {
      const literal = node as Node & { regex?: { pattern: string; flags: string }; callee?: { name?: string } };
      if (literal.callee?.name === 'RegExp') composed.push({ file, code: code.slice(node.start, node.end) });
      if (!literal.regex) continue;
      const expression = new RegExp(literal.regex.pattern, literal.regex.flags);
      found.push({ place: `${file}:${node.loc?.start.line}`, file, expression });
    }
  }
  return { found, composed };
}

const PRINTABLE = Array.from({ length: 95 }, (_, place) => String.fromCharCode(32 + place));
const CHARACTERS = [...'a0-._/:=@, "+A', ...PRINTABLE, '\n', '\u00e9', '\u0300', '\u202e', '\u{1f600}'];
const MOST_REPEATED = 40;

/** The texts of which a match can be made, one for each element in its order; `turn` chooses between what is equal. */
function piecesOf(node: AST.Node, flags: string, turn: number): string[] {
  switch (node.type) {
    case 'Pattern':
    case 'Group':
    case 'CapturingGroup': {
      const { alternatives } = node;
      return alternatives[turn % alternatives.length]?.elements.flatMap((part) => piecesOf(part, flags, turn)) ?? [];
    }
    case 'Quantifier': {
      const pieces = piecesOf(node.element, flags, turn);
      return Array.from({ length: Math.min(Math.max(node.min, 1), MOST_REPEATED) }, () => pieces.join(''));
    }
    case 'Character':
    case 'CharacterSet':
    case 'CharacterClass':
    case 'ExpressionCharacterClass': {
      const one = new RegExp(`^(?:${node.raw})$`, flags.replace(/[gy]/g, ''));
      const matching = CHARACTERS.filter((character) => one.test(character));
      return matching.length > 0 ? [matching[turn % matching.length] ?? ''] : [];
    }
    default:
      return [];
  }
}

/** Texts whose repetition is most likely to cost: what lies between any two elements of a match. */
export function pumpsOf(expression: RegExp, turns: number): string[] {
  const { source, flags } = expression;
  const mode = { unicode: flags.includes('u'), unicodeSets: flags.includes('v') };
  const tree = new RegExpParser().parsePattern(source, 0, source.length, mode);
  const pumps = new Set<string>();
  for (let turn = 0; turn < turns; turn += 1) {
    // Runs of one text are told apart by their ends.
    const pieces = piecesOf(tree, flags, turn);
    const edges = pieces.flatMap((piece, place) =>
      piece === pieces[place - 1] && piece === pieces[place + 1] ? [] : [place],
    );
    for (const from of edges) for (const to of edges) if (from <= to) pumps.add(pieces.slice(from, to + 1).join(''));
  }
  pumps.delete('');
  return [...pumps];
}
